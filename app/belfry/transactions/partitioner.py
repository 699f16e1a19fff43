"""The partition of a key, as librdkafka's `murmur2_random` partitioner gives it.

The function is librdkafka's own, which belfry loads anyway: seven times as fast as the same in
Python, and the same for both writers.  Where the library does not give it out, Python computes it.
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
    # topic (not looked at), key, its size, partitions, and what callers may pass on.
    function.argtypes = (
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_void_p,
        ctypes.c_void_p,
    )  # fmt: skip

    def partition_of(key: bytes, partitions: int) -> int:
        found: int = function(None, key, len(key), partitions, None, None)
        return found

    return partition_of
