"""Every door holds what it promises for its seeds, and says so of an input that is slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import doors

SEEDS = Path(__file__).parents[2] / "fuzz" / "seeds"
GIVEN = [(path.parent.name, path) for path in sorted(SEEDS.glob("*/*"))]


def test_each_door_has_seeds() -> None:
    assert {name for name, _ in GIVEN} | {"requests"} == set(doors.DOORS)


@pytest.mark.parametrize(("name", "path"), GIVEN, ids=lambda each: getattr(each, "name", each))
def test_a_seed_comes_in(name: str, path: Path) -> None:
    doors.DOORS[name](path.read_bytes())


def test_a_slow_input_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = doors.Timed("policies")
    for _ in range(10):
        timed(b"")
    monkeypatch.setattr(doors, "MOST_S", 0.0)
    with pytest.raises(AssertionError, match="s for 0 bytes"):
        timed(b"")
