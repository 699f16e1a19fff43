"""Rows that the target has refused are kept whole, and complete the move once they come again."""

from __future__ import annotations

import pytest

from belfry.client.refusals import IS_CUT, refused_request
from belfry.engine import move_records
from belfry.store.group_standing import GroupState, SeenRow, standings
from belfry.wire.moves import END, ROWS, decode_move
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

LARGE = 800_000


def refusing(monkeypatch: pytest.MonkeyPatch) -> tuple[MovingRing, int, int]:
    """A group that does not arrive: its target cannot read rows for a while."""
    ring = MovingRing()
    home = ring.home("demo")
    target = (home + 1) % PARTITIONS
    for number in range(20):
        size = LARGE if number < 2 else 40_000
        ring.ask("demo", schedule_id=f"s{number}", at=T0 + HOUR, payload=b"x" * size)
    ring.settle()

    def cannot(*_: object) -> None:
        raise ValueError("a row of a later release")

    monkeypatch.setattr(move_records, "read_rows", cannot)
    ring.move("demo", target)
    ring.settle()
    monkeypatch.undo()
    return ring, home, target


def test_nothing_fires_of_a_group_that_has_not_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, home, target = refusing(monkeypatch)
    assert ring.refused == ["bad_move"] * 21
    ring.now_ms += 2 * HOUR
    ring.settle()
    assert ring.shots == []
    assert sum(ring.pending()) == 0
    rows = [ring.drivers[each].engine._parts.groups for each in (home, target)]
    seen = [
        SeenRow(at, group, at_home, row)
        for at, groups in zip((home, target), rows, strict=True)
        for at_home, all_rows in ((True, groups.homes), (False, groups.lies))
        for group, row in all_rows.items()
    ]
    standing = standings(seen, PARTITIONS)[ring.group("demo")]
    assert (standing.state, standing.lies, standing.records) == (GroupState.ARRIVING, target, 0)


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_refused_completes_the_move_when_it_comes_again(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    ring, _, target = refusing(monkeypatch)
    kept = []
    for each in ring.rejected:
        refused = refused_request(each.headers)
        assert refused is not None
        assert refused.hindrance("") != IS_CUT
        said = decode_move(each.value or b"")
        assert said is not None
        assert said.kind in (ROWS, END)
        kept.append((said.number, said.kind, each, refused.own))
    ring.rejected.clear()
    ring.refused.clear()
    for _ in range(times):
        for _, _, each, own in sorted(kept, key=lambda one: one[:2]):
            ring.drivers[target].send(each.value or b"", each.key, own, ring.now_ms)
    ring.settle()
    assert ring.refused == ["bad_move"] * 21 * (times - 1)
    assert ring.at_rest()
    assert ring.pending()[target] == 20 == sum(ring.pending())
    ring.now_ms += 2 * HOUR
    ring.settle()
    assert sorted(shot.id for shot in ring.shots) == sorted(f"s{each}" for each in range(20))
