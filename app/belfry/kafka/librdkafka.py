"""Clients of librdkafka: what the worker's rooms take from confluent-kafka that reaches a cluster.

They take it by this module's name, each time anew, so that a simulator can put clients of its own
cluster in their place by setting these names (`host/machine.py` is the same for threads and time):

    consumer = librdkafka.Consumer(properties)
"""

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient

__all__ = [
    "AdminClient",
    "Consumer",
    "Message",
    "Producer",
]
