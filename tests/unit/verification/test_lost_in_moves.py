"""A schedule that a move loses, doubles or leaves behind is found, where the engine itself errs.

Each fault is planted into the engine: its rows, its manifests and what it sends agree with one
another then, in each partition, and only the two partitions of a move tell of it together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_state import StateFile
from belfry.engine.group_rows import GroupRows
from belfry.engine.moved_rows import MovedRows
from belfry.store.layout.pending_bytes import is_pending
from belfry.verification.findings import Breach, Spot
from belfry.verification.memory import Memory, short
from belfry.verification.rows import Logged
from belfry.wire import moves
from tests.unit.engine import moving_ring
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing
from tests.unit.engine.test_jobs import job
from tests.unit.verification.cluster import TENANT, Cluster, traces, verified
from tests.unit.verification.trace import MemoryInProcess, Recording

VICTIM: Final = b"demo/s2"
MEMORIES: Final = [
    pytest.param(MemoryInProcess, id="in-process"),
    pytest.param(lambda: MemoryOnDisk(StateFile(None, "x")), id="on-disk"),
]


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_ring, "Driver", Recording)


def asked(*, after_ms: int = HOUR) -> MovingRing:
    """Schedules that wait, a rule, and one that is over."""
    ring = MovingRing()
    for number in range(5):
        ring.ask(TENANT, schedule_id=f"s{number}", at=T0 + after_ms + number)
    ring.ask(TENANT, schedule_id="each", kind="EVERY", interval_ms=HOUR)
    ring.ask(TENANT, schedule_id="over", at=T0 + 1)
    ring.settle()
    ring.now_ms += 10
    ring.settle()
    return ring


def moved(ring: MovingRing | None = None, *, hops: int = 1) -> MovingRing:
    """The group moves on so often, and nothing of it fires."""
    ring = ring or asked()
    for hop in range(1, hops + 1):
        ring.move(TENANT, (ring.home(TENANT) + hop) % PARTITIONS)
        ring.settle()
    assert ring.at_rest()
    return ring


# -- faults of the engine ------------------------------------------------------------------------


def the_target_drops_one(patch: pytest.MonkeyPatch) -> None:
    put = MovedRows.put

    def dropped(self: MovedRows, arrived: Any, step: Any) -> None:
        rows = [each for each in arrived.rows if each.name != VICTIM]
        put(self, arrived._replace(rows=rows), step)

    patch.setattr(MovedRows, "put", dropped)


def the_source_sends_all_but_one(patch: pytest.MonkeyPatch) -> None:
    take = MovedRows.take

    def unsent(self: MovedRows, name: bytes, step: Any) -> bytes | None:
        row = take(self, name, step)
        return None if name == VICTIM else row

    patch.setattr(MovedRows, "take", unsent)


def the_source_leaves_one_out(patch: pytest.MonkeyPatch) -> None:
    all_of = GroupRows.all_of

    def without(self: GroupRows, group: int, stays: tuple[bytes, ...]) -> list[bytes]:
        return [each for each in all_of(self, group, stays) if each != VICTIM]

    patch.setattr(GroupRows, "all_of", without)


def the_source_keeps_what_it_sends(patch: pytest.MonkeyPatch) -> None:
    take, all_of = MovedRows.take, GroupRows.all_of
    sent: list[bytes] = []

    def kept(self: MovedRows, name: bytes, step: Any) -> bytes | None:
        if name != VICTIM:
            return take(self, name, step)
        sent.append(name)
        return self.row_of(name)

    def without(self: GroupRows, group: int, stays: tuple[bytes, ...]) -> list[bytes]:
        return [each for each in all_of(self, group, stays) if each not in sent]

    patch.setattr(MovedRows, "take", kept)
    patch.setattr(GroupRows, "all_of", without)


Fault = Callable[[pytest.MonkeyPatch], None]
FAULTS: Final[list[tuple[Fault, Breach]]] = [
    (the_target_drops_one, Breach.NOT_ARRIVED),
    (the_source_sends_all_but_one, Breach.NOT_ARRIVED),
    (the_source_leaves_one_out, Breach.LEFT_BEHIND),
    (the_source_keeps_what_it_sends, Breach.ARRIVED_TWICE),
]
# `test_traces.py` asks that each kind of finding is planted.
PLANTED_IN_MOVES: Final = {breach for _, breach in FAULTS} | {Breach.ARRIVED_CHANGED}


@pytest.mark.parametrize("make", MEMORIES)
@pytest.mark.parametrize(("fault", "breach"), FAULTS)
def test_a_fault_of_a_move_is_found_at_the_row_that_shows_it(
    fault: Fault, breach: Breach, make: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = asked()
    fault(monkeypatch)
    moved(ring)
    found = verified(ring, make()).findings
    assert [each.breach for each in found] == [breach]
    assert _key_at(ring, found[0].spot) == VICTIM
    assert "a schedule" in found[0].found
    at_target = breach is Breach.ARRIVED_TWICE
    home = ring.home(TENANT)
    assert found[0].spot.partition == ((home + 1) % PARTITIONS if at_target else home)


def _key_at(ring: MovingRing, spot: Spot) -> bytes:
    log = traces(ring)[spot.partition].changelog
    return next(each.key for each in log if each.offset == spot.offset)


# -- what the trace is damaged to say --------------------------------------------------------------


def _target(ring: MovingRing) -> list[Logged]:
    return traces(ring)[(ring.home(TENANT) + 1) % PARTITIONS].changelog


def _came(ring: MovingRing) -> int:
    log = _target(ring)
    return next(at for at, each in enumerate(log) if each.key == VICTIM)


def test_a_row_that_is_taken_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target takes one record of the move in the next step as well, at another offset."""
    put = MovedRows.put
    again: list[Any] = []

    def twice(self: MovedRows, arrived: Any, step: Any) -> None:
        put(self, arrived, step)
        if again and again[0][1] is not step.effects:
            put(self, again.pop()[0], step)
        for each in arrived.rows:
            if each.name == VICTIM:
                later = each._replace(row=_later(each.row))
                again.append((arrived._replace(rows=[later]), step.effects))

    ring = asked()
    monkeypatch.setattr(MovedRows, "put", twice)
    ring.move(TENANT, (ring.home(TENANT) + 1) % PARTITIONS)
    while not again:
        for each in range(PARTITIONS):
            ring.step(each, 1)
    for _ in range(20):
        for each in range(PARTITIONS):
            ring.step(each, 1)
    ring.settle()
    found = verified(ring).findings
    assert [each.breach for each in found] == [Breach.ARRIVED_TWICE]
    assert _key_at(ring, found[0].spot) == VICTIM
    assert found[0].spot.offset > _target(ring)[_came(ring)].offset


def _later(row: bytes) -> bytes:
    """The same row with the sequence of a later record."""
    assert is_pending(row)
    from belfry.store.layout.pending_bytes import due_and_seq, with_seq

    return with_seq(row, due_and_seq(row)[1] + 1)


@pytest.mark.parametrize(("at", "size"), [(36, 8), (44, 4), (48, 4)])
def test_a_row_that_comes_as_another_one_is_found(at: int, size: int) -> None:
    """Another life, version or number."""
    ring = moved()
    place = _came(ring)
    row = bytearray(_target(ring)[place].value or b"")
    row[at : at + size] = (77).to_bytes(size)
    _target(ring)[place] = _target(ring)[place]._replace(value=bytes(row))
    found = verified(ring).findings
    assert [each.breach for each in found] == [Breach.ARRIVED_CHANGED]
    assert _key_at(ring, found[0].spot) == VICTIM


# -- when it is judged -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", MEMORIES)
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_moves_without_a_fault_are_judged_and_nothing_is_left_to_remember(
    hops: int, make: Callable[[], Memory]
) -> None:
    made = verified(moved(hops=hops), make())
    assert made.findings == []
    assert made.counts.moves == hops
    assert made.counts.moves_compacted == made.counts.moves_under_way == 0
    assert made.memory.moves.all_given() == []
    assert made.memory.moves.over() == []


@pytest.mark.parametrize("make", MEMORIES)
@pytest.mark.parametrize(("fault", "breach"), FAULTS)
def test_a_fault_is_found_once_by_passes_that_read_amid_the_move(
    fault: Fault, breach: Breach, make: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = asked()
    fault(monkeypatch)
    made = Cluster(traces(ring), make())
    ring.move(TENANT, (ring.home(TENANT) + 1) % PARTITIONS)
    under_way = 0
    for _ in range(15):
        for each in range(PARTITIONS):
            ring.step(each, 2)
            made.round()
            under_way = max(under_way, made.counts.moves_under_way)
    assert ring.at_rest()
    assert [each.breach for each in made.findings] == [breach]
    assert under_way == 1


def test_a_move_with_a_gap_on_one_side_is_counted_and_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Offsets are missing amid the move at the target, as compaction leaves it."""
    ring = asked()
    the_target_drops_one(monkeypatch)
    moved(ring)
    log = _target(ring)
    at = next(at for at, each in enumerate(log) if each.key.startswith(b"\0gl")) + 3
    log[at:] = [each._replace(offset=each.offset + 5) for each in log[at:]]
    made = verified(ring)
    assert made.findings == []
    assert (made.counts.moves, made.counts.moves_compacted) == (0, 1)


def test_a_group_that_stays_and_one_that_comes_back_leave_nothing_behind() -> None:
    ring = asked()
    home = ring.home(TENANT)
    made = Cluster(traces(ring))
    for target in ((home + 1) % PARTITIONS, home):
        ring.move(TENANT, target)
        ring.settle()
        made.round()
    made.round()
    assert made.findings == []
    assert made.counts.moves == 2
    assert [each.partition for each in made.memory.moves.all_given()] == []


def test_what_a_bulk_job_cancels_that_is_in_the_way_of_a_move_is_not_lost() -> None:
    """The step in which the group stays where it is is one of the job as well."""
    ring = moved()
    home, source, other = ((ring.home(TENANT) + each) % PARTITIONS for each in range(3))
    ring.ask(TENANT, action="BULK", schedule_id="job", bulk=job("CANCEL", prefix="s"))
    ring.move(TENANT, other)
    # Job and GIVE come to the source in one step, and the next one finds the job under way.
    for each in (home, other, home, source):
        ring.step(each)
    ring.settle()
    assert [each.why.partition(":")[0] for each in ring.ends] == ["", "job"]
    assert sum(ring.pending()) == 1
    made = verified(ring)
    assert made.findings == []
    assert made.counts.moves == 2


def test_tenants_that_are_spread_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows stay, and lie in several partitions: what looks lost is not judged."""
    ring = asked()
    the_source_leaves_one_out(monkeypatch)
    moved(ring)
    made = Cluster(traces(ring))
    made.spread = frozenset({TENANT})
    made.round()
    made.round()
    assert made.findings == []


def test_a_pass_goes_on_in_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What left is in the file when the run ends, and what came is read by the next one."""
    ring = asked()
    the_target_drops_one(monkeypatch)
    file = StateFile(tmp_path / "state.db", "x")
    made = Cluster(traces(ring), MemoryOnDisk(file))
    ring.move(TENANT, (ring.home(TENANT) + 1) % PARTITIONS)
    home, target = ring.home(TENANT), (ring.home(TENANT) + 1) % PARTITIONS
    for each in (home, target, home, home, home):
        ring.step(each)
    made.round()
    file.save()
    standings = made.standings
    file.close()

    file = StateFile(tmp_path / "state.db", "x")
    memory = MemoryOnDisk(file)
    assert [each.takes for each in memory.moves.open_sides(target)] == [True]
    assert file.one("SELECT count(*) FROM moved_rows")[0] >= 6
    ring.settle()
    later = Cluster(traces(ring), memory, standings)
    later.round()
    assert [each.breach for each in later.findings] == [Breach.NOT_ARRIVED]
    assert file.one("SELECT count(*) FROM moved_rows")[0] == 0


def test_a_partition_that_is_read_anew_and_an_old_move_are_forgotten() -> None:
    ring = asked()
    file = StateFile(None, "x")
    memory = MemoryOnDisk(file)
    made = Cluster(traces(ring), memory)
    home, target = ring.home(TENANT), (ring.home(TENANT) + 1) % PARTITIONS
    ring.move(TENANT, target)
    for each in (home, target, home, home, home):
        ring.step(each)
    file.now_ms = T0
    made.round()
    assert memory.moves.under_way() == 1
    memory.forget_before(T0)
    assert memory.moves.under_way() == 1
    memory.forget_partition((target + 1) % PARTITIONS)
    assert memory.moves.under_way() == 1
    memory.forget_before(T0 + 1)
    assert memory.moves.under_way() == 0
    assert file.one("SELECT count(*) FROM moved_rows")[0] == 0
    assert memory.schedule(home, short(VICTIM)) is None


@pytest.mark.parametrize("make", MEMORIES)
def test_moves_of_two_clusters_with_one_name_are_not_taken_for_one(
    make: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group at its home says nothing of its last move, and each cluster has its own offsets."""
    names = iter((7, 8, 7))
    monkeypatch.setattr(moves, "move_named", lambda _offset, _last: next(names))
    ring = asked()
    home = ring.home(TENANT)
    for target in ((home + 1) % PARTITIONS, home):
        ring.move(TENANT, target)
        ring.settle()
    logs = [each.changelog for each in traces(ring)]
    ends = [log[-1].offset + 1 if log else 0 for log in logs]
    ring.move(TENANT, (home + 1) % PARTITIONS)
    ring.settle()
    made = Cluster(traces(ring), make())
    # A mirror carried the first two.
    for each, end in zip(made.partitions, ends, strict=True):
        each.elsewhere = ((0, end),)
    made.round()
    made.round()
    assert not PLANTED_IN_MOVES & {each.breach for each in made.findings}
