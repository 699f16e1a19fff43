"""Clients of librdkafka: the classes of confluent-kafka by which a worker reaches a cluster.

Code looks them up in this module each time, so that a simulator can put clients of its own cluster
in their place by setting these names (`host/machine.py` is the same for threads and time):

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
