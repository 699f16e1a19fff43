"""Key groups move while requests come, owners are killed, and steps are rolled back.

With time standing still, a belfry whose groups move answers each request as one whose groups do
not, and has the same schedules afterwards.  With time going on, each schedule fires once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.engine import giving
from belfry.schedules.identity import Homes
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending import decode_pending
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from tests.unit.engine.driver import T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

TENANTS = ("demo", "shop")
IDS = ("a", "b", "c")
LATER = 3_600_000


class Ask(NamedTuple):
    """A request comes in, at its home or elsewhere."""

    tenant: str
    schedule_id: str
    action: str
    request_id: str | None
    more: tuple[tuple[str, Any], ...]


class Go(NamedTuple):
    """The group of a tenant is to lie at a partition."""

    tenant: str
    target: int


class Work(NamedTuple):
    """A step of a partition, that takes so much in, and is committed or not."""

    partition: int
    take: int | None
    commit: bool


class Kill(NamedTuple):
    """A partition's owner is killed."""

    partition: int


class Ack(NamedTuple):
    """The fire of this number is acknowledged, if there is one."""

    number: int


class Wait(NamedTuple):
    """Time goes on."""

    ms: int


# A slice may be smaller than most groups.
SLICE = st.sampled_from([1, 2, 1_000])
PARTITION = st.integers(0, PARTITIONS - 1)
TENANT = st.sampled_from(TENANTS)
MORE = st.sampled_from(
    [
        (("at", T0 + LATER),),
        (("at", T0 + LATER), ("payload", b"x")),
        (("kind", "EVERY"), ("interval_ms", 60_000), ("start_at", T0 + LATER)),
        (("at", T0 + LATER), ("group", "g"), ("serial", True), ("ack_timeout_ms", 60_000)),
        (("kind", "CRON"), ("cron", "0 9 * * *"), ("timezone", "Europe/Paris")),
    ]
)
ACTION = st.sampled_from(["UPSERT"] * 4 + ["CANCEL", "PAUSE", "RESUME", "CREATE", "TRIGGER"])
ASK = st.builds(
    Ask, TENANT, st.sampled_from(IDS), ACTION, st.sampled_from([None, None, "r1", "r2"]), MORE
)
GO = st.builds(Go, TENANT, PARTITION)
WORK = st.builds(
    Work, PARTITION, st.sampled_from([None, None, 1, 2]), st.sampled_from([True, True, False])
)
EVENTS = st.lists(
    st.one_of(ASK, ASK, GO, WORK, WORK, WORK, st.builds(Kill, PARTITION)), min_size=10, max_size=60
)


def asked(ring: MovingRing, event: Ask) -> None:
    more = dict(event.more) if event.action in ("UPSERT", "CREATE") else {}
    ring.ask(
        event.tenant, schedule_id=event.schedule_id, action=event.action,
        request_id=event.request_id, **more,
    )  # fmt: skip


def play(ring: MovingRing, events: list[Any]) -> None:
    for event in events:
        if isinstance(event, Ask):
            asked(ring, event)
        elif isinstance(event, Go):
            ring.move(event.tenant, event.target)
        elif isinstance(event, Work):
            ring.step(event.partition, event.take, commit=event.commit)
        elif isinstance(event, Kill):
            ring.kill(event.partition)
        elif isinstance(event, Ack):
            if event.number < len(ring.shots):
                shot = ring.shots[event.number]
                identity = (shot.header("belfry-fire-id") or b"").decode()
                tenant = shot.topic.rpartition(".")[2]
                ring.ask(tenant, schedule_id=shot.id, action="ACK", fire_id=identity)
        else:
            ring.now_ms += event.ms
    ring.settle()


def verdicts(ring: MovingRing) -> dict[str, list[tuple[Any, ...]]]:
    """What was told of each tenant, in order."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for each in ring.told:
        found[each.tenant].append(
            (each.schedule_id, str(each.outcome), each.code, each.version, each.due_at,
             each.request_id, each.source_partition, each.source_offset)
        )  # fmt: skip
    return found


def waiting(ring: MovingRing) -> dict[bytes, tuple[Any, ...]]:
    """All that waits, without what a move changes."""
    found: dict[bytes, tuple[Any, ...]] = {}
    for driver in ring.drivers:
        store = ScheduleStore(driver.rows)
        for name, row in store.all_names():
            if name[:1] != b"\0":
                assert name not in found, f"{name!r} lies in two partitions"
                if is_location(row):
                    record = store.pending_at(name, row)
                    found[name] = (record[:4], *decode_pending(record)._replace(seq=0, life=0))
                else:
                    found[name] = ("over", row[2])
    return found


@settings(max_examples=300, deadline=None)
@given(EVENTS, st.sampled_from([Level.ALL, Level.FAILURES]), SLICE)
def test_a_move_changes_no_verdict_and_no_schedule(
    events: list[Any], level: Level, slice_rows: int
) -> None:
    ring, twin = MovingRing(level), MovingRing(level)
    with patch.object(giving, "SLICE_ROWS", slice_rows):
        play(ring, events)
    play(twin, [each for each in events if isinstance(each, Ask)])
    assert ring.at_rest()
    assert ring.refused.count("bad_move") == len(ring.refused) - len(twin.refused)
    # A home's own offsets hold MOVE records as well, so places are compared by their order.
    assert _places(verdicts(ring)) == _places(verdicts(twin))
    assert waiting(ring) == waiting(twin)


def _places(told: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for tenant, rows in told.items():
        offsets = [row[-1] for row in rows]
        assert offsets == sorted(offsets), f"{tenant}: {offsets}"
        home = Homes(PARTITIONS).of(tenant)
        assert {row[-2] for row in rows} == {home}
        found[tenant] = [row[:-2] for row in rows]
    return found


SERIAL = (("group", "g"), ("serial", True), ("ack_timeout_ms", 50))
SOON = st.builds(
    lambda tenant, name, ms, more: Ask(tenant, name, "UPSERT", None, (("at", T0 + ms), *more)),
    TENANT,
    st.sampled_from([f"s{number}" for number in range(12)]),
    st.integers(1, 400),
    st.sampled_from([(), (("group", "g"),), SERIAL]),
)
WAIT = st.builds(Wait, st.integers(1, 40))
KILL = st.builds(Kill, PARTITION)
ACK = st.builds(Ack, st.integers(0, 5))
LIVE = st.lists(
    st.one_of(SOON, SOON, GO, WORK, WORK, WORK, KILL, WAIT, WAIT, ACK), min_size=10, max_size=80
)


@settings(max_examples=300, deadline=None)
@given(LIVE, SLICE)
def test_what_fires_while_groups_move_fires_once_and_not_early(
    events: list[Any], slice_rows: int
) -> None:
    ring = MovingRing()
    with patch.object(giving, "SLICE_ROWS", slice_rows):
        play(ring, events)
    for _ in range(100):
        # Fires that nobody acknowledges let others of their group wait for 50 ms.
        ring.now_ms += 25
        ring.settle()
    begun = Counter(
        (each.tenant, each.schedule_id) for each in ring.told if each.outcome == "ACCEPTED"
    )
    fired = Counter((str(shot.topic.split(".")[-1]), shot.id) for shot in ring.shots)
    assert fired == begun
    ids = [shot.header("belfry-fire-id") for shot in ring.shots]
    assert len(ids) == len(set(ids))
    assert sum(ring.pending()) == 0
    assert ring.at_rest()
