"""The partition of a key, as librdkafka's `murmur2_random` partitioner gives it.

The function is librdkafka's own, which belfry loads anyway: ten times as fast as the same in
Python, and the same for both writers.  It is called with the interpreter's lock held, for it takes
less time than giving the lock up.  Where the library does not give it out, Python computes it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from belfry.schedules import identity

PartitionOf = Callable[[bytes, int], int]
_NAME: Final = "rd_kafka_msg_partitioner_murmur2"


@cache
def partitioner() -> PartitionOf:
    """What computes the partition of a key among so many."""
    from confluent_kafka import cimpl

    try:
        function: Any = getattr(ctypes.PyDLL(cimpl.__file__), _NAME)
    except (OSError, AttributeError):
        return identity.partition_of
    function.restype = ctypes.c_int32
    # topic (not looked at), key, its size.  What follows is a C int, partitions, and two pointers
    # that callers may pass on: ctypes gives an int and None as those, and checks what is declared.
    function.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)

    def partition_of(key: bytes, partitions: int) -> int:
        found: int = function(None, key, len(key), partitions, None, None)
        return found

    return partition_of
