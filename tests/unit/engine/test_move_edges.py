"""What comes in just as a key group comes or leaves, and what is too much to follow it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from belfry.engine import giving, group_rows
from belfry.store.layout.calendars import HEAD_OF_CALENDAR
from belfry.tenants.policy import TenantPolicy
from belfry.wire.headers import SOURCE
from belfry.wire.record import Headers, size_of
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

# What a broker takes unless it is told otherwise (`message.max.bytes`).
BROKER_BYTES = 1_048_588
SIZES = (10, 150_000, 60_000, 900_000, 10, 199_000, 900, 5)


def asked_for(ring: MovingRing, target: int) -> int:
    """Move the group of demo, up to where its home lets requests wait; who gives it away next."""
    home, group = ring.home("demo"), ring.group("demo")
    row = ring.drivers[home].engine._parts.groups.homes.get(group)
    source = home if row is None else row.at
    ring.move("demo", target)
    for each in (home, target, home):
        ring.step(each)
    return source


def given(ring: MovingRing, source: int) -> None:
    """Give it away whole; nobody else does anything meanwhile."""
    while ring.step(source):
        pass


def away(ring: MovingRing) -> int:
    """Let the group of demo lie away from its home; where."""
    target = (ring.home("demo") + 1) % PARTITIONS
    ring.move("demo", target)
    ring.settle()
    return target


def test_a_trigger_in_the_step_in_which_the_last_of_its_group_comes_fires() -> None:
    """As the step began nothing of the group was to fire there."""
    ring = MovingRing()
    ring.follow(TenantPolicy("demo", lifecycle="ALL", source_header=True))
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    source = asked_for(ring, (ring.home("demo") + 1) % PARTITIONS)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    # The home hears that it has left, and sends the request on behind it.
    given(ring, source)
    ring.settle()
    assert ring.outcomes() == ["ACCEPTED a", "TRIGGERED a"]
    assert [SOURCE in dict(shot.headers) for shot in ring.shots] == [False]


def test_a_trigger_that_waited_for_its_group_to_come_home_fires() -> None:
    ring = MovingRing()
    home = ring.home("demo")
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    away(ring)
    source = asked_for(ring, home)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    ring.step(home)
    given(ring, source)
    ring.settle()
    assert ring.outcomes() == ["ACCEPTED a", "TRIGGERED a"]


def test_a_trigger_of_a_tenant_that_is_paused_is_refused_while_its_group_comes() -> None:
    ring = MovingRing()
    ring.follow(TenantPolicy("demo", lifecycle="ALL", paused=True))
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    source = asked_for(ring, (ring.home("demo") + 1) % PARTITIONS)
    ring.ask("demo", schedule_id="a", action="TRIGGER")
    given(ring, source)
    ring.settle()
    assert ring.refused == ["tenant_held"]


def test_a_bulk_job_that_waited_for_its_group_to_come_home_is_refused_and_changes_nothing() -> None:
    """Rows that came have later offsets than it: it would take them for younger than itself."""
    ring = MovingRing()
    home = ring.home("demo")
    for name in ("s1", "s2"):
        ring.ask("demo", schedule_id=name, at=T0 + HOUR)
    ring.settle()
    target = away(ring)
    source = asked_for(ring, home)
    cancel = json.dumps({"action": "CANCEL", "prefix": "s"})
    ring.ask("demo", schedule_id="job", action="BULK", bulk=cancel, request_id="r-job")
    ring.ask("demo", schedule_id="s3", at=T0 + HOUR)
    ring.step(home)
    given(ring, source)
    ring.settle()
    assert source == target
    assert ring.refused == ["tenant_held"]
    refused = next(each for each in ring.told if each.request_id == "r-job")
    assert "send it again" in (refused.reason or "")
    assert ring.pending()[home] == 3 == sum(ring.pending())
    # Sent again under its id it is judged anew.
    ring.ask("demo", schedule_id="job", action="BULK", bulk=cancel, request_id="r-job")
    ring.settle()
    assert sum(ring.pending()) == 0


def test_a_bulk_job_that_waited_follows_its_group_and_finds_what_was_asked_for_before() -> None:
    ring = MovingRing()
    home = ring.home("demo")
    ring.ask("demo", schedule_id="s1", at=T0 + HOUR)
    ring.settle()
    target = (home + 1) % PARTITIONS
    source = asked_for(ring, target)
    cancel = json.dumps({"action": "CANCEL", "prefix": "s"})
    ring.ask("demo", schedule_id="job", action="BULK", bulk=cancel)
    ring.ask("demo", schedule_id="s2", at=T0 + HOUR)
    ring.step(home)
    given(ring, source)
    ring.settle()
    assert ring.refused == []
    assert ring.pending()[target] == 1 == sum(ring.pending())


@pytest.mark.parametrize("waits", [True, False])
def test_no_record_that_follows_a_group_is_larger_than_a_broker_takes(waits: bool) -> None:
    """One that Kafka refuses would roll each step of its partition back.

    `waits`: it comes while the group is on its way, else when it lies elsewhere.
    """
    ring = MovingRing()
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    home = ring.home("demo")
    source = asked_for(ring, (home + 1) % PARTITIONS)
    if not waits:
        given(ring, source)
        ring.settle()
    for size in (900_000, BROKER_BYTES - 200):
        headers: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"b"), ("belfry-in", b"1h")]
        ring.drivers[home].send(bytes(size), b"demo", headers, ring.now_ms)
    ring.settle()
    assert ring.refused == ["request_too_large"]
    assert ring.at_rest()
    assert sum(ring.pending()) == 2
    largest = max(size_of(record) for record in ring.drivers[(home + 1) % PARTITIONS].source)
    assert 900_000 < largest < BROKER_BYTES - 1_000


def test_rows_that_share_records_share_none_that_is_larger_than_a_broker_takes() -> None:
    rows = [
        (b"\0c%d" % number, HEAD_OF_CALENDAR + bytes(size)) for number, size in enumerate(SIZES)
    ]
    records = list(giving._in_records(rows))
    assert [row for record in records for row in record] == rows
    sizes = [sum(len(name) + len(row) for name, row in record) for record in records]
    for record, size in zip(records, sizes, strict=True):
        assert len(record) == 1 or size <= giving.TOGETHER_BYTES
    # None is begun too early.
    assert all(one + two > giving.TOGETHER_BYTES for one, two in pairwise(sizes))
    assert group_rows.MOST_ROW_BYTES < BROKER_BYTES - 1_000
