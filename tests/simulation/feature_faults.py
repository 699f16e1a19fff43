"""What operators do meanwhile: keys, redrives, moves of key groups, growth.

Each is a function like those of `faults.py`; the part of the world that it belongs to draws the
rest.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from belfry.wire.origins import vouched
from belfry.wire.record import Origin, origin_headers
from belfry.wire.worker_keys import Purpose, keys_of
from tests.simulation.load import TENANTS
from tests.simulation.murmur import partition_of
from tests.simulation.world import World

LEAST_GROUPS: Final = 4_096
# Magic, kind, group, target, move, number.
MOVE: Final = Struct(">4sBIIQQ")


def newer_key(world: World) -> None:
    """A tenant gets a newer key for its payloads, and what waits is encrypted anew."""
    world.policies.renew()


def redrive(world: World) -> None:
    """Somebody sends a range of refused requests, or of fired events, again."""
    world.redriving.begin()


def redrive_together(world: World) -> None:
    """Several people send the same range again, one while another works."""
    world.redriving.begin_together()


def move_group(world: World) -> None:
    """The key group of a tenant is to lie at a partition, as `belfry rebalance` would have it."""
    partitions = world.scenario.partitions
    tenant = world.random.choice(TENANTS).encode()
    groups = -(-LEAST_GROUPS // partitions) * partitions
    group, target = partition_of(tenant, groups), world.random.randrange(partitions)
    value = MOVE.pack(b"\x02bm\x01", 1, group, target, 0, 0)
    log = world.broker.log("belfry.schedules", group % partitions)
    key = b"key group %d" % group
    secret = str(world.scenario.settings["http_worker_secret"]).encode()
    came = Origin("belfry.schedules", group % partitions, 0, 0, rerouted=False)
    headers = vouched(keys_of([secret], Purpose.ORIGIN), key, value, origin_headers(came))
    world.broker.append(log, (key, value, headers))


def grow(world: World) -> None:
    """Somebody gives the belfry partitions, by the shipped command."""
    assert world.growing is not None, "this world grows"
    world.growing.begin()


def ask_move(world: World) -> None:
    """Somebody asks workers for a key group to lie elsewhere, in what was added mostly."""
    assert world.growing is not None, "this world grows"
    world.growing.move()
