"""Threads, locks, queues and the passing of time, as the worker's rooms get them from the machine.

Rooms look these names up in this module at each use.  So a simulator can replace the machine by
setting these names, and runs the rest as shipped:

    stopping = machine.Event()
    machine.sleep(0.1)

The wall clock, which is only read and never waited for, is in `clock.py`.
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
