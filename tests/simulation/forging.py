"""A stranger who says of requests that other homes have been asked about them.

    ash, spread 1, then 3      a schedule that began at ash lies there, and its route leads on
    headers                    belfry-origin-asked: 1, and perhaps a made-up origin and signature
    written to                 the home that would be asked next, or any partition

Workers share a secret that the stranger lacks, so these are requests like any others: each has one
verdict, and each schedule is found where it began (I41).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from tests.simulation.broker import Headers
from tests.simulation.load import TENANTS
from tests.simulation.murmur import partition_of
from tests.simulation.sent import SOURCE, Sent, as_avro

if TYPE_CHECKING:
    from tests.simulation.world import World

ACTIONS: Final = ("UPSERT", "UPSERT", "UPSERT", "CANCEL")
# Which share goes to the partition for which its words would be true.
WELL_PLACED: Final = 0.8


def forge(world: World) -> None:
    """A stranger writes a request, and says how many homes have been asked."""
    random, load = world.random, world.load
    number, tenant = len(load.sent), random.choice(TENANTS)
    schedule_id, action = random.choice("abcde"), random.choice(ACTIONS)
    fields: dict[str, Any] = {}
    if action == "UPSERT":
        fields = {"at": world.broker.now_ms() + random.randint(-1_000, 9_000)}
    sent = Sent(f"f{number}", tenant, schedule_id, action, fields, f"id-{number}")
    route = _route(world, tenant, schedule_id)
    asked = random.randrange(len(route))
    partition = route[asked]
    if random.random() > WELL_PLACED:
        partition = random.randrange(world.scenario.partitions)
    load.append(sent, partition, as_avro(sent), _headers(random, partition, asked))


def _route(world: World, tenant: str, schedule_id: str) -> list[int]:
    """The homes that a schedule may be at, in the order in which they are asked."""
    assert world.respreading is not None, "spreads change in this world"
    shard, homes = crc32(schedule_id.encode()), list[int]()
    for spread in world.respreading.had(tenant):
        name = tenant if spread == 1 else f"{tenant}/{shard % spread}"
        homes.append(partition_of(name.encode(), world.scenario.partitions))
    return list(dict.fromkeys(homes))


def _headers(random: Random, partition: int, asked: int) -> Headers:
    """What the stranger writes: how many were asked, and in two of three cases much more."""
    said: Headers = [("belfry-origin-asked", b"%d" % asked)]
    if random.random() < 0.67:
        said = [
            ("belfry-origin-topic", SOURCE.encode()),
            ("belfry-origin-partition", b"%d" % partition),
            ("belfry-origin-offset", b"%d" % random.randrange(50)),
            ("belfry-origin-timestamp", b"%d" % 1_798_000_000_000),
            *said,
        ]
    if random.random() < 0.5:
        said.append(("belfry-origin-signature", b"%064x" % random.getrandbits(256)))
    return said
