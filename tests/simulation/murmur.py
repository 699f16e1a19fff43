"""Kafka's default partitioner, written down a second time: the checker believes nobody."""

from __future__ import annotations


def partition_of(key: bytes, partitions: int) -> int:
    """Partition that Kafka's murmur2 partitioner gives a key."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        part = int.from_bytes(key[at : at + 4], "little") * factor & mask
        part = (part ^ part >> 24) * factor & mask
        value = (value * factor & mask) ^ part
    if key[whole:]:
        value = (value ^ int.from_bytes(key[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return ((value ^ value >> 15) & 0x7FFFFFFF) % partitions
