"""What stops a partition before its owner fences anybody, and what does not."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.host.failpoints import Failpoints
from belfry.kafka.changelog_sieve import Sieve
from belfry.kafka.log_bounds import AheadOfLog
from belfry.recovery.evidence import Evidence, Recoveries
from belfry.recovery.reading import ReplayProgress
from belfry.recovery.takeover import TakeOver
from belfry.store.identity import (
    OTHER_CLUSTER,
    UNKNOWN_ID,
    Contradiction,
    Identity,
    decode_identity,
    encode_identity,
)
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore

HERE = Identity("cluster-a", "log-1", "in-1")
OLDER = HERE._replace(changelog="log-0")
MANIFEST = Manifest(60, 1, 50, 0, 7, 0, bytes(16))


def evidence(anchor: Identity | None, low: int = 0, end: int = 100) -> Evidence:
    def read(partition: int) -> Identity | None:
        assert partition == 3
        return anchor

    anchors: Any = SimpleNamespace(read=read)
    source: Any = SimpleNamespace(bounds=lambda: (low, end))
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


@pytest.mark.parametrize(
    ("asked", "read", "says"),
    [
        (evidence(OLDER), replay(None, None), "this partition had an owner in topic log-0:"),
        (evidence(HERE), replay(None, None), "this partition had an owner in topic log-1:"),
        (evidence(None, low=60), replay(HERE), "`belfry recover --accept-lost 3:50-59`"),
    ],
)
def test_a_contradiction_says_what_it_is_about(asked: Evidence, read: Any, says: str) -> None:
    with pytest.raises(Contradiction) as stopped:
        asked.check(read)
    assert says in str(stopped.value)


@pytest.mark.parametrize(("asked", "read", "code"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_an_open_transaction_hides_proves_nothing_yet(
    asked: Evidence, read: Any, code: str
) -> None:
    # A mirror or a take-over writes to a copy, and a fence would roll that back.
    stops = pytest.raises(Contradiction, match=code) if code == OTHER_CLUSTER else nullcontext()
    with stops:
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


class Changelog:
    """Records of a changelog; `read` counts those that were asked for."""

    def __init__(self, *rows: tuple[bytes, bytes | None]) -> None:
        self.rows, self.low, self.position, self.read = list(rows), 0, 0, 0
        self.sieve = Sieve()
        self.sought: list[tuple[int, int]] = []

    def ends(self) -> tuple[int, int]:
        return self.low, len(self.rows)

    def seek(self, offset: int, *, manifest_at: int = 7) -> None:
        self.sought.append((offset, manifest_at))
        self.position = offset

    def read_until(self, end: int, _most: int) -> Any:
        found = self.rows[self.position : end]
        self.position, self.read = end, self.read + len(found)
        yield found

    def changes(self, found: Any) -> Any:
        return found, range(len(found))


def identity_row(generation: int) -> tuple[bytes, bytes]:
    return keys.IDENTITY_KEY, encode_identity(HERE._replace(generation=generation))


@pytest.mark.parametrize(
    ("anchor", "logged", "since"),
    [(None, 0, False), (0, 0, False), (1, 0, True), (0, 1, True), (None, 1, True)],
    ids=["nobody knows of one", "the first one", "the anchor", "the log", "the anchor is gone"],
)
def test_who_tells_that_a_recovery_was_done(anchor: int | None, logged: int, since: bool) -> None:
    """A recovery commits first; its anchor may not have been written after that."""
    kept = None if anchor is None else HERE._replace(generation=anchor)
    changelog: Any = Changelog(identity_row(0), (b"a/b", b"row"), identity_row(logged))
    assert evidence(kept).recovered_since(0, changelog) is since


def test_a_partition_that_waits_for_a_choice_reads_on_where_it_was() -> None:
    recoveries, changelog = Recoveries(), Changelog(identity_row(0), (b"a/b", b"row"))
    log: Any = changelog
    for _ in range(3):
        assert recoveries.generation("log-1", 3, log) == 0
    assert changelog.read == 2
    changelog.rows.append(identity_row(1))
    assert recoveries.generation("log-1", 3, log) == 1
    assert changelog.read == 3
    assert recoveries.generation("log-2", 3, log) == 1, "another changelog is read from its start"
    assert changelog.read == 6


def test_a_changelog_that_was_cut_off_is_read_from_its_beginning() -> None:
    recoveries, changelog = Recoveries(), Changelog((b"a/b", b"row"), identity_row(1))
    log: Any = changelog
    assert recoveries.generation("log-1", 3, log) == 1
    changelog.rows.pop()
    assert recoveries.generation("log-1", 3, log) == 0


def test_a_changelog_without_an_identity_knows_of_no_recovery() -> None:
    log: Any = Changelog((b"a/b", b"row"))
    assert Recoveries().generation("log-1", 3, log) == 0


def test_what_is_read_on_is_believed_by_where_the_last_manifest_lies() -> None:
    """Signed rows are believed by their places (`kafka/changelog_sieve.py`)."""
    recoveries, changelog = Recoveries(), Changelog(identity_row(0), (b"a/b", b"row"))
    changelog.low = 1
    log: Any = changelog
    recoveries.generation("log-1", 3, log)
    log.sieve = SimpleNamespace(manifest_at=1)
    recoveries.generation("log-1", 3, log)
    recoveries.generation("log-1", 3, log)
    changelog.low = 2
    recoveries.generation("log-1", 3, log)
    changelog.low = 3
    changelog.rows += [(b"a/b", b"row")] * 2
    recoveries.generation("log-1", 3, log)
    assert changelog.sought == [(1, -1), (2, -1), (2, 1), (2, 1), (3, -1)]


@pytest.mark.parametrize(
    ("kept", "generation"), [(0, 0), (0, 1), (1, 1), (1, 2)], ids=["0-0", "0-1", "1-1", "1-2"]
)
def test_a_store_that_is_ahead_is_rebuilt_only_after_a_recovery(kept: int, generation: int) -> None:
    """The changelog ends before what the store has read, and the anchor knows of no recovery."""
    rows: Any = MemoryMap()
    store = ScheduleStore(rows)
    store.note(*identity_row(kept))
    store.commit(StoredState(9, 0, MANIFEST))
    anew: Any = object()
    told: list[bool] = []
    local: Any = SimpleNamespace(
        anew=lambda _rows, _why: anew, found_wrong=lambda: told.append(True)
    )
    changelog: Any = Changelog(identity_row(generation))
    never: Any = None
    take = TakeOver(local, evidence(HERE), ReplayProgress(), Failpoints(""), never, never)
    error = AheadOfLog("the log ends at 1", 1, 9)
    if generation > kept:
        assert take._rebuilt(rows, changelog, error) is anew
        assert told, "a checkpoint that it came from is not used again"
        return
    with pytest.raises(Contradiction) as stopped:
        take._rebuilt(rows, changelog, error)
    assert stopped.value.code == "log_truncated"
    assert "ends at offset 1, and the local state has read it up to offset 9" in stopped.value.what


def test_ids_that_become_known_are_kept() -> None:
    unknown = HERE._replace(changelog=UNKNOWN_ID, schedules=UNKNOWN_ID, generation=2)
    asked, read = evidence(unknown), replay(unknown)
    asked.check(read)
    identity, row = asked.identity(read)
    assert identity == HERE._replace(generation=2)
    assert row is not None
    assert decode_identity(row) == identity
