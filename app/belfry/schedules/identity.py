"""Identities: the home partition of a schedule and the id of a fire.

`murmur2` is Kafka's own hash (`org.apache.kafka.common.utils.Utils.murmur2`), so that a producer
with key = tenant and the murmur2 partitioner writes straight to the home partition.

A schedule goes by three numbers besides its name:

    generation   which life of the name it is: cancelled and asked for again, it is another one.
                 Within the engine it is `life`, the source position of the request that began it;
                 outside it is a number of 31 bits that follows from that (`generation_of`)
    version      how often the definition was changed in this generation, from 1
    occurrence   which instant of the rule, from 0

    etag         generation.version, such as ``394217.2``; HTTP and clients show and send it
    fire id      a hash of name, life, version and nominal instant

A fire id depends on nothing that another attempt could change: not on the worker, not on the clock,
not on the epoch.  So an event that is made again after a crash has the same id, and consumers can
drop it by that.

Frozen: all of these functions.  Another hash would give other homes and ids to schedules at rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final
from zlib import crc32

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_FIRE: Final = Struct(">QIq")
_BEGUN: Final = blake2b(digest_size=16)
_ETAG: Final = re.compile(r"(?:([1-9][0-9]{0,9})\.)?([1-9][0-9]{0,9})")
_LIFE_OFFSET_BITS: Final = 48
_VERSION_BITS: Final = 32
# A prime, so that partition and offset both count.
_MOST_GENERATION: Final = 2**31 - 1


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of `data`, as an unsigned number.

    Austin Appleby's MurmurHash2 with the seed that Kafka's clients have.  Java's result is signed;
    both have the same bits.
    """
    length = len(data)
    h = _SEED ^ length
    end = length & ~3
    for i in range(0, end, 4):
        k = int.from_bytes(data[i : i + 4], "little")
        k = (k * _M) & _MASK
        k ^= k >> 24
        h = ((h * _M) & _MASK) ^ ((k * _M) & _MASK)
    rest = data[end:]
    if rest:
        h ^= int.from_bytes(rest, "little")
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """Partition that Kafka's default partitioner gives a key.

    The sign bit is cut off as Kafka's `Utils.toPositive` does; `partitions` is 1 or more.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Homes:
    """Home partition of each schedule; tenants are remembered, for hashing costs 3 µs.

    A tenant lives in one partition, unless its policy spreads it over several *shards*.  A shard
    is a name of its own for the hash, so shards may fall on the same partition:

        spread 1    shop ─► murmur2("shop")       all schedules in one partition
        spread 4    shop ─► crc32(schedule id) % 4 = 2 ─► murmur2("shop/2")

    `partitions` is the number of partitions of the changelog, which never changes.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._of: dict[str, int] = {}

    def of(self, tenant: str, schedule_id: str = "", spread: int = 1) -> int:
        """Home of a schedule of a tenant that is spread over `spread` shards."""
        if spread != 1:
            return self.shard(tenant, crc32(schedule_id.encode()) % spread)
        return self._home(tenant)

    def shard(self, tenant: str, number: int) -> int:
        """Home of one shard of a tenant that is spread."""
        return self._home(f"{tenant}/{number}")

    def all_of(self, tenant: str, spreads: Iterable[int]) -> list[int]:
        """Homes of all schedules of a tenant that has been spread so, one spread after the other.

        Another spread at the end makes the list longer at its end, and changes nothing before.
        """
        found: dict[int, None] = {}
        for spread in spreads:
            if spread == 1:
                found[self.of(tenant)] = None
            else:
                found |= {self.shard(tenant, number): None for number in range(spread)}
        return list(found)

    def _home(self, route: str) -> int:
        home = self._of.get(route)
        if home is None:
            home = self._of[route] = partition_of(route.encode(), self.partitions)
            if len(self._of) > 200_000:
                self._of = {route: home}
        return home

    def route(
        self, tenant: str, schedule_id: str, former: tuple[int, ...], spread: int
    ) -> list[int]:
        """Homes that a request has to ask, in this order; the last one begins new schedules.

        `former` are the spreads that the tenant had before, oldest first.  A schedule stays where
        it was begun, so a request looks for it at each former home before it begins a new one.
        The first of equal homes counts, so that a route only ever gets longer at its end.
        """
        homes = [self.of(tenant, schedule_id, each) for each in (*former, spread)]
        return list(dict.fromkeys(homes))


def generation_at(partition: int, offset: int) -> int:
    """The life that the request at this source position begins (partition above the offset).

    No two requests share a position, so no two lives share a number, and it needs no counter.
    Offsets have 48 bits: at a million requests a second they last for nine years of one partition.
    """
    return partition << _LIFE_OFFSET_BITS | offset


def partition_of_life(life: int) -> int:
    """The source partition of the request that began a life, and of all later ones of it."""
    return life >> _LIFE_OFFSET_BITS


def generation_of(life: int) -> int:
    """The public number of a life, 1 to 2**31 - 1: a schedule that begins anew gets another one.

    Two lives of one schedule share it only if requests that began them lie a multiple of 2**31 - 1
    records apart.
    """
    return life % _MOST_GENERATION + 1


def expected_of(generation: int, version: int) -> int:
    """The value of `expected_version` where a generation is expected too: it above the version.

    ``expected_of(7, 2)`` is ``7 << 32 | 2``.  A plain version stays below 2**32, so both fit one
    field of the schema and older requests keep their meaning.
    """
    return generation << _VERSION_BITS | version


def expected_in(expected: int) -> tuple[int, int]:
    """Generation and version that an `expected_version` names; 0 for any generation."""
    if expected < 1 << _VERSION_BITS:
        return 0, expected
    return expected >> _VERSION_BITS, expected & (1 << _VERSION_BITS) - 1


def etag_of(generation: int | None, version: int | None) -> str | None:
    """A version of a schedule as text, ``generation.version``; the version alone where the
    generation is not known, None where neither is."""
    if version is None or generation is None:
        return None if version is None else str(version)
    return f"{generation}.{version}"


def expected_from(etag: str) -> int | None:
    """The `expected_version` that such a text stands for, or None if it is not such a text.

        expected_from("7.2")    30064771074, which is 7 << 32 | 2
        expected_from("2")      2, of any generation
        expected_from("0.2")    None

    Both numbers stay below 2**31.
    """
    found = _ETAG.fullmatch(etag)
    if found is None:
        return None
    generation, version = int(found[1] or 0), int(found[2])
    if max(generation, version) >= 2**31:
        return None
    return expected_of(generation, version)


def fire_id(schedule: bytes, life: int, version: int, nominal_ms: int) -> bytes:
    """Id of a fire, the same for every attempt: 32 hexadecimal digits.

    `schedule` is ``tenant/schedule_id``, which is unambiguous since no tenant holds a slash.
    """
    # A copy of a hash that has begun costs less than another one.
    digest = _BEGUN.copy()
    digest.update(schedule + _FIRE.pack(life, version, nominal_ms))
    return digest.hexdigest().encode()


def extra_fire_id(schedule: bytes, life: int, version: int, position: int) -> bytes:
    """Id of a fire that a TRIGGER at source offset `position` asked for.

    The word at the end keeps it apart from a regular fire whose nominal instant is that number.
    """
    identity = schedule + _FIRE.pack(life, version, position) + b"trigger"
    return blake2b(identity, digest_size=16).hexdigest().encode()


def backfill_fire_id(schedule: bytes, life: int, job: tuple[int, int], nominal_ms: int) -> bytes:
    """Id of a fire that a backfill makes of the occurrence at `nominal_ms`.

    `job` is where the job was first received (partition, offset), so another job has other ids, and
    none is that of the fire in its time.
    """
    place = _FIRE.pack(life, job[0], job[1]) + nominal_ms.to_bytes(8, "big", signed=True)
    identity = schedule + place + b"backfill"
    return blake2b(identity, digest_size=16).hexdigest().encode()
