"""Threads, locks, queues and the passing of time: what the worker's rooms take from the machine.

They take it by this module's name, each time anew, so that a simulator can put a machine of its own
in its place by setting these names, and runs the rest as shipped:

    stopping = machine.Event()
    machine.sleep(0.1)

What is looked at instead of waited for, the instant of the wall clock, comes by `clock.py`.
"""

from queue import Queue, SimpleQueue
from threading import BoundedSemaphore, Event, Lock, RLock, Semaphore, Thread
from time import monotonic, sleep

__all__ = [
    "BoundedSemaphore",
    "Event",
    "Lock",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Thread",
    "monotonic",
    "sleep",
]
