"""`belfry recover` tells what became of the anchor, and mends one that is behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from belfry.cli import recover_partitions
from belfry.cli.recover_partitions import PartitionRecovery
from belfry.recovery.partition_evidence import PartitionEvidence
from belfry.recovery.recovery_plan import Choices
from belfry.store.identity import Contradiction, Identity
from belfry.store.layout.manifests import Manifest

OLD = Identity("cluster-a", "log-1", "in-1", 0)
NOW = OLD._replace(changelog="log-2", generation=1)
MANIFEST = Manifest(40, 1, 50, 0, 7, 0, bytes(16))
NOTHING: Any = None
WELL = PartitionEvidence(0, NOW, NOW, NOTHING, MANIFEST, NOW, 120, False, 0, 100)
LOST = replace(
    WELL, anchor=OLD, logged=None, identity=None, problem=Contradiction("changelog_lost", "a", "b")
)


class Anchors:
    """Anchors that were written; `error` is why the next one is not."""

    def __init__(self) -> None:
        self.written: dict[int, Identity] = {}
        self.newer: dict[int, Identity] = {}
        self.error: Exception | None = None

    def write(self, identities: dict[int, Identity]) -> dict[int, Identity]:
        if self.error is not None:
            raise self.error
        self.written |= identities
        return self.newer


class Writer:
    """Writes nothing, and says how many schedules wait."""

    def __init__(self, _settings: Any, _partition: int) -> None:
        self.close = lambda: None

    def write(self, _found: PartitionEvidence, _plan: Any) -> Manifest:
        return MANIFEST


def recovery(found: PartitionEvidence, *, apply: bool = True) -> tuple[PartitionRecovery, Anchors]:
    """The command on one partition, of which that is known."""

    class Looker:
        @contextmanager
        def look(self, _partition: int) -> Iterator[PartitionEvidence]:
            yield found

    one: Any = PartitionRecovery.__new__(PartitionRecovery)
    one._settings = one._homes = 1
    one._choices, one._apply, one.left = Choices("nothing"), apply, 0
    one._looker, one._anchors = Looker(), Anchors()
    one._counted = lambda each, _what: each
    return one, one._anchors


def said(one: PartitionRecovery) -> list[tuple[str, str]]:
    """What it says, as (what, detail)."""
    return [(told["what"], told["detail"]) for told, _ in one.run(None)]


@pytest.mark.parametrize("anchor", [OLD, None], ids=["of before the recovery", "gone"])
def test_an_anchor_that_is_behind_is_written_where_all_else_agrees(anchor: Identity | None) -> None:
    found = replace(WELL, anchor=anchor)
    one, anchors = recovery(found, apply=False)
    assert [what for what, _ in said(one)] == ["ok", "would do"]
    assert (anchors.written, one.left) == ({}, 0)
    one, anchors = recovery(found)
    lines = said(one)
    assert [what for what, _ in lines] == ["ok", "done"]
    assert lines[1][1].endswith("the changelog is of generation 1")
    assert (anchors.written, one.left) == ({0: NOW}, 0)


@pytest.mark.parametrize(
    "found",
    [
        WELL,
        replace(WELL, anchor=NOW._replace(generation=2)),
        replace(WELL, anchor=None, identity=None, logged=None),
    ],
    ids=["in agreement", "of a later recovery", "nothing was ever kept"],
)
def test_any_other_anchor_is_left_as_it_is(found: PartitionEvidence) -> None:
    one, anchors = recovery(found)
    assert [what for what, _ in said(one)] == ["ok"]
    assert anchors.written == {}


def test_a_recovery_whose_anchor_fails_says_so_and_is_not_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recover_partitions, "RecoveryWriter", Writer)
    one, anchors = recovery(LOST)
    anchors.error = ConnectionError("group app.identity: no answer")
    lines = said(one)
    assert "transaction 40: 7 schedules wait" in lines[-2][1]
    assert lines[-1][0] == "failed"
    assert "no answer" in lines[-1][1]
    assert "repeat `belfry recover --apply`" in lines[-1][1]
    assert one.left == 1
    # What it says to do writes the anchor alone.
    one, anchors = recovery(replace(WELL, anchor=OLD))
    anchors.error = ConnectionError("still no answer")
    assert [what for what, _ in said(one)] == ["ok", "failed"]
    assert one.left == 1


def test_a_recovery_ends_with_its_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover_partitions, "RecoveryWriter", Writer)
    one, anchors = recovery(LOST)
    assert said(one)[-1][0] == "done"
    assert (anchors.written, one.left) == ({0: NOW}, 0)


def test_an_anchor_of_somebody_elses_recovery_is_told() -> None:
    one, anchors = recovery(replace(WELL, anchor=OLD))
    anchors.newer = {0: NOW._replace(generation=3)}
    assert "generation 3, which is later" in said(one)[-1][1]
    assert one.left == 1


def test_partitions_are_counted_as_they_are_looked_at() -> None:
    one: Any = recovery(WELL)[0]
    told: list[tuple[str, list[int]]] = []

    def counted(each: Any, what: str) -> Any:
        told.append((what, [*each]))
        return told[-1][1]

    one._counted = counted
    said(one)
    assert told == [("partitions looked at", [0])]
