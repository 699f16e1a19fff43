"""Steps of all partitions hold four full ones together, and each fires something meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.engine.effects import Effects
from belfry.kafka.outcome import Unknown
from belfry.partitions import steps
from belfry.partitions.pacing import FULL, LINGER_MS, MOST_HALVINGS, TOGETHER, Pace
from belfry.partitions.step_shares import Held, StepShare, StepShares
from belfry.wire.batch import SourceBatch
from tests.unit.partitions.test_owner import Firing


def test_four_partitions_always_do_full_steps() -> None:
    held = Held()
    four = [StepShare(held) for _ in range(4)]
    for number in range(40):
        with four[number % 4]:
            for share in four:
                assert share.take() == 0
            for share in four:
                share.keep(2 * FULL)
    assert held.parts == 3 * FULL


def test_many_partitions_hold_little_more_than_four_and_none_gets_nothing() -> None:
    held = Held()
    halved = [StepShare(held).take() for _ in range(64)]
    assert halved == [0] * 4 + [MOST_HALVINGS] * 60
    assert held.parts == TOGETHER + 60 * (FULL >> MOST_HALVINGS)


def test_commits_that_hang_leave_others_small_steps_and_small_steps_leave_them_full_ones() -> None:
    held = Held()
    hanging = [StepShare(held) for _ in range(4)]
    for share in hanging:
        share.take()
    with StepShare(held) as other:
        assert other.take() == MOST_HALVINGS
    for share in hanging:
        share.keep(6)
    with StepShare(held) as other:
        assert other.take() == 0
    assert held.parts == 24


def test_who_wants_little_gets_it_where_that_fits() -> None:
    held = Held()
    held.take(FULL)
    held.parts += 3 * FULL - 100
    share = StepShare(held)
    assert (share.take(100), share.parts) == (0, 100)
    assert (share.take(101), share.parts) == (MOST_HALVINGS, 101), "the least that a step may do"
    assert (share.take(), share.parts) == (MOST_HALVINGS, FULL // 16)
    assert (share.take(0), share.parts) == (0, 0)
    assert held.parts == 4 * FULL - 100


def test_a_share_is_given_back_however_the_step_ends() -> None:
    held = Held()
    share = StepShare(held)

    def fails() -> None:
        with share:
            share.take()
            raise Unknown("nobody knows")

    with pytest.raises(Unknown):
        fails()
    assert held.parts == 0
    with share:
        share.take()
        share.keep(FULL // 2)
    assert (held.parts, share.parts) == (0, 0)


class Loop:
    """Steps of a partition, which fire and take in by calls of this class, and their worker."""

    def __init__(self) -> None:
        self.shares = StepShares()
        given, upkeep, self.commits = MagicMock(), MagicMock(), MagicMock()
        given.opener.settings = SimpleNamespace(batch_records=160, step_bytes=1_600, fire_chunk=320)
        given.opener.clock.both_ms.return_value = (1.0, 1.0)
        given.opener.clock.monotonic_ms.return_value = 1.0
        given.guard.now_ms.return_value = 1
        given.guard.may_fire = True
        given.shares = self.shares
        upkeep.add_to.side_effect = lambda _owned, effects, *_: effects
        upkeep.longest_s.return_value = 1.0
        self.commits.at_most.side_effect = Pace(320).halved
        self.commits.commit.return_value = True
        self.owned = MagicMock()
        self.owned.engine.next_due_ms.return_value = 0
        self.owned.engine.aside.any = False
        self.owned.engine.effects = Effects(room=1_600)
        self.owned.engine.fire_due.return_value = Effects(room=1_600)
        self.owned.engine.changed = 0
        self.owned.resolver.deferred.any = self.owned.resolver.too_many = False
        self.owned.resolver.begun = False
        self.owned.source.end = self.owned.engine.position = 0
        loop: Any = MagicMock(asked=False)
        given.guard.skew_ms = 0
        given.opener.clock.wall_ms.return_value = 1.0
        self.steps = steps.Steps(given, self.commits, upkeep, lambda: True, loop)

    def others(self, held: Held, number: int = 4) -> None:
        """So many other partitions hold full steps."""
        for _ in range(number):
            StepShare(held).take()

    def step(self) -> None:
        list(self.steps.step(self.owned))


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    monkeypatch.setattr(steps, "take_aside", lambda _owned, effects, *_: effects)
    return Loop()


def test_a_step_fires_what_others_leave_and_holds_what_it_has_fired_to_its_end(loop: Loop) -> None:
    asked: list[tuple[int, int]] = []
    held: list[int] = []

    def fire(_now_ms: int, at_most: int, _up: Any, most_bytes: int) -> Effects:
        asked.append((at_most, most_bytes))
        return Effects(fired=[MagicMock()] * 20, room=1_600 - 80)

    def commit(*_: Any) -> bool:
        held.append(loop.shares.fired.parts)
        return len(held) != 2

    loop.owned.engine.fire_due.side_effect = fire
    loop.commits.commit.side_effect = commit
    loop.step()
    loop.others(loop.shares.fired)
    loop.step()
    assert loop.shares.fired.parts == TOGETHER, "it was rolled back"
    loop.commits.commit.side_effect = Unknown("nobody knows")
    with pytest.raises(Unknown):
        loop.step()
    assert asked == [(320, 1_600), (50, 100), (50, 100)]
    assert held == [FULL // 16, TOGETHER + FULL // 16]
    assert loop.shares.fired.parts == TOGETHER
    assert loop.shares.taken.parts == 0


@pytest.mark.parametrize(
    ("fired", "changed", "room", "parts"),
    [
        (0, 0, 1_600, 0),
        (32, 32, 1_600, FULL // 10),
        (32, 80, 1_600, FULL // 4),
        (32, 32, 800, FULL // 2),
        (0, 640, 1_600, FULL),
    ],
)
def test_a_step_holds_its_events_its_bytes_or_what_it_holds_back(
    loop: Loop, fired: int, changed: int, room: int, parts: int
) -> None:
    held: list[int] = []

    def commit(*_: Any) -> bool:
        held.append(loop.shares.fired.parts)
        return True

    loop.owned.engine.changed = changed
    effects = Effects(fired=[MagicMock()] * fired, room=room, moved=True)
    loop.owned.engine.fire_due.return_value = effects
    loop.commits.commit.side_effect = commit
    loop.step()
    assert held == [parts]
    assert loop.shares.fired.parts == 0


@pytest.mark.parametrize(
    ("others", "size", "records", "taken"),
    [
        (0, 10, 160, [160]),
        (3, 10, 160, [160]),
        (4, 10, 10, [10]),
        (4, 10, 160, [10] * 16),
        # They are large: as many bytes; one record at least.
        (4, 20, 80, [5] * 16),
        (4, 800, 2, [1, 1]),
        (4, 9_000, 1, [1]),
        (4, 10, 0, [0]),
    ],
)
def test_a_batch_is_taken_in_by_pieces_while_others_take_in_much(
    loop: Loop, others: int, size: int, records: int, taken: list[int]
) -> None:
    """Each piece begins where the one before it has ended, and the reader hears of the last."""
    batch = SourceBatch(
        0, 200, [(n, 0, None, bytes(size), None) for n in range(records)], size=size * records
    )
    loop.others(loop.shares.taken, others)
    found: list[int] = []

    def accept(part: SourceBatch, *_: Any) -> Effects:
        assert part.start == loop.owned.engine.position
        loop.owned.engine.position = part.next_position
        found.append(len(part.records))
        return Effects(moved=True)

    loop.owned.engine.accept.side_effect = accept
    number = loop.steps.begin_term()
    loop.steps.mail.deliver(number, batch)
    for _ in taken:
        loop.step()
    assert found == taken
    looked_at = [len(call.args[0]) for call in loop.owned.resolver.ready.call_args_list]
    assert looked_at == taken, "to look at all of what waits for each piece would take as long"
    assert loop.owned.engine.position == 200
    assert sum(call.args[0] for call in loop.owned.source.taken.call_args_list) == 1
    assert loop.shares.taken.parts == FULL * others


def records_of(number: int, size: int = 10) -> SourceBatch:
    """A batch of so many records of so many bytes."""
    records: Any = [(n, 0, None, bytes(size), None) for n in range(number)]
    return SourceBatch(0, number, records, size=size * number)


def test_a_batch_that_waits_for_its_schemas_holds_nothing_and_stays_whole(loop: Loop) -> None:
    """To begin anew with a part of it would let it wait once more."""
    resolver, looked_at = loop.owned.resolver, list[int]()

    def ready(records: Any) -> bool:
        looked_at.append(len(records))
        resolver.begun = True
        return len(looked_at) > 2

    def commit(*_: Any) -> bool:
        held.append(loop.shares.taken.parts)
        return True

    held: list[int] = []
    resolver.ready.side_effect, loop.commits.commit.side_effect = ready, commit
    loop.owned.engine.fire_due.return_value = Effects(room=1_600, moved=True)
    loop.owned.engine.accept.side_effect = lambda *_: Effects(moved=True)
    loop.steps.mail.deliver(loop.steps.begin_term(), records_of(40))
    loop.step()
    loop.others(loop.shares.taken)
    loop.step()
    assert held == [0, TOGETHER]
    loop.owned.engine.position = 10
    loop.step()
    assert looked_at == [40, 40, 40]
    assert [len(call.args[0].records) for call in loop.owned.engine.accept.call_args_list] == [10]


def test_a_batch_of_which_some_are_looked_at_first_holds_what_these_are(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MOST_AT_ONCE", 40)
    resolver, held = loop.owned.resolver, list[int]()

    def ready(records: Any) -> bool:
        resolver.too_many = len(records) > 40
        return not resolver.too_many

    def accept(part: SourceBatch, *_: Any) -> Effects:
        assert len(part.records) == 40
        held.append(loop.shares.taken.parts)
        loop.owned.engine.position = part.next_position
        return Effects(moved=True)

    resolver.ready.side_effect, loop.owned.engine.accept.side_effect = ready, accept
    loop.steps.mail.deliver(loop.steps.begin_term(), records_of(120))
    for _ in range(3):
        loop.step()
    assert held == [FULL // 4] * 3


def test_nobody_rests_while_the_rest_of_a_batch_waits() -> None:
    """Each piece is a small step, and a pause behind it would be for what is there already."""
    firing = Firing()
    firing.effects.fired.clear()
    firing.engine.changed, firing.effects.moved = 0, True
    for _ in range(4):
        firing.runner._steps._taken._held.take(FULL)
    value = bytes(16_000_000 // 48)
    records: Any = [(n, 0, None, value, None) for n in range(48)]
    assert firing.step(SourceBatch(0, 48, records, size=48 * len(value))) == 100.0
    assert [firing.step() for _ in range(15)] == [100.0] * 15
    assert firing.engine.position == 48
    firing.owned.source.taken.assert_called_with(1)
    assert firing.step(SourceBatch(48, 49, [])) == 100.0 + LINGER_MS
