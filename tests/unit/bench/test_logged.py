"""What a benchmark reads in the changelog is read once the last transaction can be."""

from __future__ import annotations

import pytest

from belfry.bench import logged
from belfry.bench.logged import LoggedTransaction, fired_by
from belfry.engine.step import NO_MANIFEST


def trail(*fired: int) -> list[LoggedTransaction]:
    """Transactions that fired so many events each."""
    return [LoggedTransaction(NO_MANIFEST._replace(fired=each), 0) for each in fired]


def test_transactions_are_read_once_the_last_one_has_its_marker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logged, "AGAIN_S", 0.0)
    found = iter([[trail(0, 600)], [trail(0, 600), trail(100)], [trail(0, 600), trail(100, 300)]])
    assert fired_by(lambda: next(found), 1000) == trail(600, 100, 300)


def test_who_waits_in_vain_for_a_marker_gets_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logged, "MARKERS_S", -1.0)
    assert fired_by(lambda: [trail(600)], 1000) == trail(600)
