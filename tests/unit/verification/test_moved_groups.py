"""Key groups move between verified partitions: a right run has no findings, a damaged one has."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from belfry.verification.findings import Breach
from belfry.verification.memory import Stands, short
from belfry.verification.rows import MANIFEST_KEY, Logged
from tests.unit.engine import moving_ring
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing
from tests.unit.verification.cluster import TENANT, Cluster, traces, verified
from tests.unit.verification.trace import MINUTE, Recording

MARKER: Final = b"\1\2"


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_ring, "Driver", Recording)


def away(ring: MovingRing) -> int:
    return (ring.home(TENANT) + 1) % PARTITIONS


def moved(*, at_home: bool = False) -> MovingRing:
    """A group with all sorts of rows moves, is asked for more there, fires there, and moves on."""
    ring = MovingRing()
    ring.ask(TENANT, schedule_id="over", at=T0 + 5, request_id="r")
    ring.ask(TENANT, schedule_id="gone", at=T0 + HOUR)
    ring.ask(TENANT, schedule_id="gone", action="CANCEL")
    ring.ask(TENANT, schedule_id="each", kind="EVERY", interval_ms=MINUTE)
    ring.ask(TENANT, schedule_id="serial", at=T0 + 5, completion="ACK", group="g")
    for number in range(4):
        ring.ask(TENANT, schedule_id=f"s{number}", at=T0 + 2 * MINUTE + number, group="g")
    ring.settle()
    ring.now_ms += 10
    ring.settle()
    targets = [away(ring), (away(ring) + 1) % PARTITIONS]
    for target in [*targets, ring.home(TENANT)] if at_home else targets:
        ring.move(TENANT, target)
        ring.ask(TENANT, schedule_id=f"late{target}", at=ring.now_ms + MINUTE)
        ring.ask(TENANT, schedule_id="each", action="TRIGGER")
        ring.settle()
        ring.ask(TENANT, schedule_id="each", action="TRIGGER")
        ring.settle()
        ring.now_ms += MINUTE
        ring.settle()
        ring.kill(target)
    ring.ask(TENANT, schedule_id="s3", action="CANCEL")
    ring.now_ms += HOUR
    ring.settle()
    assert ring.at_rest()
    assert ring.refused == []
    return ring


@pytest.mark.parametrize("at_home", [False, True])
def test_groups_that_move_have_no_findings(at_home: bool) -> None:
    ring = moved(at_home=at_home)
    made = verified(ring)
    assert made.findings == []
    assert made.counts.fires == len(ring.shots) > 12
    assert [each.header("belfry-occurrence") for each in ring.shots].count(b"-1") >= 4
    assert made.counts.checked == made.counts.transactions > 20
    # What left is gone there, and not as what was cancelled: s3 was, where it lay.
    known = [each.stands for each in made.memory.schedules(short(b"demo/s2"))]
    assert known == [Stands.OVER]
    gone = made.memory.schedules(short(b"demo/s3"))
    assert [each.stands for each in gone] == [Stands.OVER]


def test_a_verification_that_comes_while_a_group_is_on_its_way_goes_on_behind_it() -> None:
    ring = MovingRing()
    made = Cluster(traces(ring))
    for number in range(3):
        ring.ask(TENANT, schedule_id=f"s{number}", at=T0 + 5 + number)
    ring.settle()
    ring.now_ms += 6
    ring.settle()
    ring.move(TENANT, away(ring))
    for _ in range(12):
        for each in range(PARTITIONS):
            ring.step(each)
            made.round()
    ring.now_ms += MINUTE
    ring.settle()
    made.round()
    made.round()
    assert len(ring.shots) == 3
    assert made.findings == []


def test_what_is_due_waits_while_its_group_is_on_its_way_and_no_longer() -> None:
    """The source is asked and has no owner any more; then the same rows without the move."""
    ring = MovingRing()
    home = ring.home(TENANT)
    ring.ask(TENANT, schedule_id="a", at=T0 + 5)
    ring.settle()
    ring.move(TENANT, away(ring))
    ring.step(home)
    ring.step(away(ring))
    # READY is taken in, and then GIVE.
    ring.step(home)
    ring.step(home)
    trace = traces(ring)[home]
    made = Cluster(traces(ring))
    made.round(T0 + HOUR)
    assert made.findings == []
    assert made.counts.moving == 1
    trace.changelog = [each for each in trace.changelog if not each.key.startswith(b"\0gl")]
    made = Cluster(traces(ring))
    made.round(T0 + HOUR)
    assert [each.breach for each in made.findings] == [Breach.OVERDUE]


# -- planted ---------------------------------------------------------------------------------------


def lose_an_event(ring: MovingRing) -> None:
    trace = next(each for each in traces(ring) if any(f.schedule_id == b"s1" for f in each.fired))
    trace.fired = [each for each in trace.fired if each.schedule_id != b"s1"]


def double_an_event(ring: MovingRing) -> None:
    trace = next(each for each in traces(ring) if any(f.schedule_id == b"s1" for f in each.fired))
    fire = next(each for each in trace.fired if each.schedule_id == b"s1")
    trace.fired.append(fire._replace(spot=fire.spot._replace(offset=9_999)))


def lose_a_row_that_came(ring: MovingRing) -> None:
    trace = traces(ring)[away(ring)]
    at = next(n for n, each in enumerate(trace.changelog) if each.key == b"demo/s1")
    filler = trace.changelog[at]._replace(key=b"filler", value=None)
    trace.changelog[at] = filler


def forge_a_marker_of_another_group(ring: MovingRing) -> None:
    """In the transaction that takes a group in, a schedule of another tenant is over."""
    trace = traces(ring)[away(ring)]
    at, came = next(
        (number, each) for number, each in enumerate(trace.changelog)
        if each.key.startswith(b"demo/") and (each.value or b"").startswith(MARKER)
        and each.value is not None and each.value[2] == 0
    )  # fmt: skip
    trace.changelog[at] = came._replace(key=b"other/x")


def forge_a_group(ring: MovingRing) -> None:
    trace = traces(ring)[away(ring)]
    trace.changelog.append(Logged(trace.offset, T0 + 2 * HOUR, b"\0gl\0\0\0\1", b"\1\x11\6"))


@pytest.mark.parametrize(
    ("plant", "breaches"),
    [
        (lose_an_event, {Breach.LOST}),
        (double_an_event, {Breach.DOUBLED}),
        (
            lose_a_row_that_came,
            {Breach.NOT_ARRIVED, Breach.PENDING, Breach.COUNT, Breach.UNASKED},
        ),
        (forge_a_marker_of_another_group, {Breach.UNASKED, Breach.COUNT}),
        (forge_a_group, {Breach.STRANGER}),
    ],
)
def test_what_is_damaged_in_a_moved_group_is_found(
    plant: Callable[[MovingRing], None], breaches: set[Breach]
) -> None:
    ring = moved()
    plant(ring)
    found = {each.breach for each in verified(ring).findings}
    assert found
    assert found <= breaches


def test_manifests_of_partitions_with_groups_are_read() -> None:
    """They have a letter of their own: a stranger's record is something else."""
    ring = moved()
    letters = {
        (each.value or b"")[1]
        for trace in traces(ring)
        for each in trace.changelog
        if each.key.startswith(MANIFEST_KEY) and each.value is not None
    }
    assert letters == {4, 18}


def test_a_trigger_of_the_home_is_not_claimed_by_a_transaction_where_its_group_lies_now() -> None:
    """Requests of the same offset: one fired at home, another one where the group lies then."""
    ring = MovingRing()
    home, target = ring.home(TENANT), 0
    assert target < home, "it is verified first"
    ring.ask(TENANT, schedule_id="each", kind="EVERY", interval_ms=HOUR)
    ring.settle()
    trigger_often(ring)
    ring.move(TENANT, target)
    ring.settle()
    trigger_often(ring)
    assert len(ring.drivers[target].source) < len(ring.drivers[home].source)
    made = verified(ring)
    assert made.findings == []
    assert made.counts.fires == len(ring.shots) == 40
    assert made.counts.digests == made.counts.checked


def test_triggers_between_changes_in_the_step_in_which_the_group_comes_are_told_apart() -> None:
    """The rows of that step have the last version alone, and nothing was known there before."""
    ring = MovingRing()
    home, target = ring.home(TENANT), away(ring)
    for name in ("a", "b"):
        ring.ask(TENANT, schedule_id=name, at=T0 + HOUR)
    ring.settle()
    ring.move(TENANT, target)
    for each in (home, target, home):
        ring.step(each)
    for name in ("a", "b"):
        ring.ask(TENANT, schedule_id=name, action="TRIGGER")
        ring.ask(TENANT, schedule_id=name, at=T0 + HOUR, payload=b"another")
    while ring.step(home):
        pass
    # The first of them comes with the group, and the second in the same millisecond.
    taken = len(ring.drivers[target].source) - ring.drivers[target].engine.position
    ring.step(target, taken - 2)
    ring.ask(TENANT, schedule_id="a", action="TRIGGER")
    ring.settle()
    made = verified(ring)
    assert made.findings == []
    assert made.counts.fires == len(ring.shots) == 3
    assert made.counts.digests == made.counts.checked


def test_a_trigger_of_what_is_cancelled_in_the_step_in_which_the_group_comes_is_found() -> None:
    """No row of that step tells of it any more; others of the group fire a moment later."""
    ring = MovingRing()
    home, target = ring.home(TENANT), away(ring)
    for name in ("a", "b"):
        ring.ask(TENANT, schedule_id=name, at=T0 + HOUR)
    ring.settle()
    ring.move(TENANT, target)
    for each in (home, target, home):
        ring.step(each)
    ring.ask(TENANT, schedule_id="b", action="TRIGGER")
    ring.ask(TENANT, schedule_id="b", action="CANCEL")
    while ring.step(home):
        pass
    ring.step(target)
    for _ in range(5):
        ring.ask(TENANT, schedule_id="a", action="TRIGGER")
        ring.settle()
    made = verified(ring)
    assert made.findings == []
    assert made.counts.fires == len(ring.shots) == 6


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_triggers_between_changes_of_what_begins_anew_are_told_apart(one: str, other: str) -> None:
    """What is known of their schedules is that a life before is over; no group moves here."""
    ring = MovingRing()
    for name in ("a", "b"):
        ring.ask(TENANT, schedule_id=name, at=T0 + 5)
    ring.settle()
    ring.now_ms += 10
    ring.settle()
    for name in (one, other):
        ring.ask(TENANT, schedule_id=name, at=T0 + HOUR)
    ring.ask(TENANT, schedule_id=one, action="TRIGGER")
    ring.ask(TENANT, schedule_id=one, at=T0 + HOUR, payload=b"another")
    ring.step(ring.home(TENANT))
    for _ in range(5):
        ring.ask(TENANT, schedule_id=other, action="TRIGGER")
        ring.settle()
    made = verified(ring)
    assert made.findings == []
    assert made.counts.fires == len(ring.shots) == 8
    assert made.counts.digests == made.counts.checked


def trigger_often(ring: MovingRing) -> None:
    for _ in range(20):
        ring.ask(TENANT, schedule_id="each", action="TRIGGER")
        ring.settle()


@pytest.mark.parametrize("rolls_back", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_random_moves_with_kills_have_no_findings(seed: int, rolls_back: bool) -> None:
    """Steps of chance, owners that are killed, moves to anywhere.

    Behind a step that is rolled back not every transaction can be checked.
    """
    chance, ring = Random(seed), MovingRing()
    for number in range(150):
        name = f"s{chance.randrange(8)}"
        asked: dict[str, Any] = chance.choice(
            [
                {"at": ring.now_ms + chance.randrange(20_000)},
                {"kind": "EVERY", "interval_ms": 7_000, "max_fires": 3},
                {"kind": "EVERY", "interval_ms": 3_000},
                {"action": "CANCEL"},
                {"action": "TRIGGER"},
                {"action": "TRIGGER"},
                {"at": ring.now_ms + 1_000, "group": "g", "completion": "ACK"},
            ]
        )
        ring.ask(TENANT, schedule_id=name, request_id=f"r{number}", **asked)
        if chance.random() < 0.15:
            ring.move(TENANT, chance.randrange(PARTITIONS))
        for _ in range(chance.randrange(4)):
            each = chance.randrange(PARTITIONS)
            commit = not rolls_back or chance.random() > 0.1
            ring.step(each, chance.choice([None, 1, 2]), commit=commit)
        if chance.random() < 0.05:
            ring.kill(chance.randrange(PARTITIONS))
        ring.now_ms += chance.randrange(2_000)
    ring.settle()
    assert ring.at_rest()
    made = verified(ring)
    assert made.findings == []
    assert len(ring.shots) > 10
    assert made.counts.fires == len(ring.shots) or (rolls_back and made.counts.fires)
