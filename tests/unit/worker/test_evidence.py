"""What stops a partition before its owner fences anybody, and what does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.store.identity import Contradiction, Identity, decode_identity
from belfry.store.records import Manifest
from belfry.worker.evidence import Evidence

HERE = Identity("cluster-a", "log-1", "in-1")
OLDER = HERE._replace(changelog="log-0")
MANIFEST = Manifest(60, 1, 50, 0, 7, 0, bytes(16))


def evidence(anchor: Identity | None, low: int = 0, end: int = 100) -> Evidence:
    anchors: Any = SimpleNamespace(read=lambda _partition: anchor)
    source: Any = SimpleNamespace(ends=lambda: (low, end), log_end=lambda: end)
    return Evidence(3, HERE, anchors, source)


def replay(logged: Identity | None, manifest: Manifest | None = MANIFEST) -> Any:
    return SimpleNamespace(identity=logged, manifest=manifest)


CONTRADICTIONS: dict[str, tuple[Evidence, Any, str]] = {
    "the changelog is empty, and had an owner": (
        evidence(OLDER), replay(None, None), "changelog_lost",
    ),
    "this very changelog was emptied": (evidence(HERE), replay(None, None), "changelog_lost"),
    "made anew while an owner wrote to it": (evidence(OLDER), replay(None), "changelog_copied"),
    "the input was made anew": (
        evidence(None), replay(HERE._replace(schedules="in-0")), "input_anew",
    ),
    "mirrored": (evidence(None), replay(HERE._replace(cluster="b")), "other_cluster"),
    "requests are gone": (evidence(None, low=60), replay(HERE), "requests_lost"),
    "the input was cut off": (evidence(None, end=40), replay(HERE), "input_truncated"),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "read", "code"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_stops(asked: Evidence, read: Any, code: str) -> None:
    with pytest.raises(Contradiction) as stopped:
        asked.check(read)
    assert stopped.value.code == code


@pytest.mark.parametrize(("asked", "read", "_code"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_an_open_transaction_hides_proves_nothing_yet(
    asked: Evidence, read: Any, _code: str
) -> None:
    asked.check(read, lambda: True)


def test_a_first_start_just_works() -> None:
    asked, read = evidence(None), replay(None, None)
    asked.check(read)
    identity, row = asked.identity(read)
    assert identity == HERE
    assert row is not None
    assert decode_identity(row) == HERE


def test_state_of_an_older_release_adopts_the_ids() -> None:
    asked, read = evidence(None), replay(None)
    asked.check(read)
    assert asked.identity(read)[1] is not None


def test_what_the_changelog_tells_needs_no_anchor() -> None:
    asked, read = evidence(OLDER), replay(HERE)
    asked.check(read)
    assert asked.identity(read) == (HERE, None)
