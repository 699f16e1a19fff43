"""What a recovery writes leads a replay to the state that was recovered."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.layout.jobs import JobRow, decode_job, encode_job
from belfry.store.layout.manifests import Manifest, StoredState, encode_manifest
from belfry.store.layout.pending import Pending, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import is_pending
from belfry.store.layout.records import Marker, encode_marker
from belfry.store.ordered_map import MemoryMap
from belfry.store.recovery import (
    EARLIER_INPUT,
    SKIPPED,
    activation_manifest,
    age_of,
    changelog_rows,
    fence_manifest,
    manifest_after,
    of_earlier_input,
)
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore

Change = tuple[bytes, bytes | None]
HERE = Identity("cluster-a", "log-1", "in-1")
WATERMARK = 500


def pending(name: str, due_ms: int, seq: int) -> bytes:
    return encode_pending(
        Pending(
            due_ms, due_ms, 0, seq, seq, 1, 0, 0, due_ms, 0, b"a", name.encode(), b"", b"", None,
            b"", b"", b"x",
        )
    )  # fmt: skip


ROWS: dict[bytes, bytes] = {
    b"a/fired": encode_marker(Marker(0, 400, 400, 1, 1, 1)),
    b"a/overdue": pending("overdue", 450, 2),
    b"a/waits": pending("waits", 900, 3),
    keys.SETTINGS_KEY: b"{}",
}


def transaction(number: int, waiting: int, *changes: Change) -> list[Change]:
    manifest = Manifest(number, 1, 10, WATERMARK, waiting, 0, bytes(16))
    return [*changes, (keys.manifest_key(number), encode_manifest(manifest))]


def fold(log: list[Change]) -> Replay:
    """A worker's replay of a whole changelog, checked."""
    store = ScheduleStore(MemoryMap())
    replay = Replay(store)
    replay.apply(log, range(len(log)), 7)
    replay.finish(7)
    return replay


def local() -> ScheduleStore:
    """The local state of transaction 60, as its owner had it."""
    replay = fold(transaction(60, 2, *ROWS.items()))
    store: ScheduleStore = replay._store
    return store


def recovered(before: list[Change], logged: Manifest | None) -> list[Change]:
    """A changelog with the recovery of that state behind what was there."""
    state = local().state()
    assert state is not None
    rows: list[Change] = list(changelog_rows(local()))
    waiting = sum(is_pending(row) for _, row in rows if row is not None)
    manifest = manifest_after(state.manifest, logged, 10, waiting)
    identity = encode_identity(HERE._replace(generation=1))
    rows += [(keys.IDENTITY_KEY, identity)]
    return [*before, *rows, (keys.manifest_key(manifest.txn_seq), encode_manifest(manifest))]


def content(replay: Replay) -> dict[bytes, bytes]:
    return dict(changelog_rows(replay._store))


def test_every_row_is_written_as_it_was() -> None:
    assert dict(changelog_rows(local())) == ROWS


def test_an_empty_changelog_takes_the_state_on() -> None:
    replay = fold(recovered([], None))
    assert content(replay) == ROWS
    assert replay.manifest is not None
    assert (replay.manifest.txn_seq, replay.manifest.pending) == (61, 2)
    assert replay.manifest.watermark_ms == WATERMARK


def test_a_changelog_that_was_cut_off_takes_it_on() -> None:
    begun = transaction(40, 1, (b"a/waits", pending("waits", 900, 3)))
    replay = fold(recovered(begun, Manifest(40, 1, 10, WATERMARK, 1, 0, bytes(16))))
    assert content(replay) == ROWS
    assert replay.manifest is not None
    assert replay.manifest.txn_seq == 60 + SKIPPED


def fork() -> list[Change]:
    """What two owners wrote who did not see one another."""
    row = b"a/waits", pending("waits", 900, 3)
    return [*transaction(40, 1, row), *transaction(39, 1, row)]


def test_a_fork_is_a_hole_until_it_is_recovered() -> None:
    with pytest.raises(HoleInChangelog, match="transaction 39 follows transaction 40"):
        fold(fork())
    assert content(fold(recovered(fork(), Manifest(39, 1, 0, 0, 1, 0, bytes(16))))) == ROWS


def test_a_fork_is_no_hole_less_for_what_follows_it() -> None:
    row = b"a/waits", pending("waits", 900, 3)
    with pytest.raises(HoleInChangelog, match="transaction 39 follows transaction 40"):
        fold([*fork(), *transaction(40, 1, row), *transaction(41, 1, row)])


def test_local_state_meets_a_fork_before_it_takes_anything_of_it() -> None:
    store = local()
    before = dict(store._rows.scan(b"", b"\xff"))
    replay = Replay(store)
    with pytest.raises(HoleInChangelog):
        replay.apply(transaction(58, 0, (b"a/waits", None)), [70, 71], 7)
    store.discard()
    assert dict(store._rows.scan(b"", b"\xff")) == before


def test_sequences_of_an_earlier_input_meet_no_offset() -> None:
    moved = decode_pending(of_earlier_input(ROWS[b"a/waits"]))
    assert moved == decode_pending(ROWS[b"a/waits"])._replace(seq=3 + EARLIER_INPUT)
    twice = decode_pending(of_earlier_input(of_earlier_input(ROWS[b"a/waits"])))
    assert twice.seq == 3 + 2 * EARLIER_INPUT


def test_what_does_not_wait_has_no_sequence() -> None:
    assert of_earlier_input(ROWS[b"a/fired"]) == ROWS[b"a/fired"]


def test_nothing_begins_with_the_first_transaction() -> None:
    found = manifest_after(None, None, 77, 0)
    assert found == Manifest(1, 1, 77, 0, 0, 0, OF_NOTHING)
    assert not found.grouped


# What the digest of no fires is.
OF_NOTHING = blake2b(b"", digest_size=16).digest()
LAST = Manifest(60, 4, 10, WATERMARK, 3, 5, bytes(16))


def test_a_recovery_is_numbered_behind_all_that_is_known() -> None:
    logged = Manifest(90, 2, 11, 7, 1, 0, bytes(16))
    assert manifest_after(LAST, None, 77, 3) == Manifest(61, 5, 77, WATERMARK, 3, 0, OF_NOTHING)
    assert manifest_after(None, logged, 77, 3) == (
        Manifest(90 + SKIPPED, 3, 77, 0, 3, 0, OF_NOTHING)
    )
    found = manifest_after(LAST, logged, 77, 3)
    assert found == Manifest(90 + SKIPPED, 5, 77, WATERMARK, 3, 0, OF_NOTHING)
    grouped = manifest_after(LAST, logged._replace(grouped=True), 77, 3)
    assert (found.grouped, grouped.grouped) == (False, True)


def test_a_side_gives_a_partition_up_and_takes_it_over_behind_its_last_transaction() -> None:
    assert fence_manifest(None, 77) == Manifest(1, 1, 77, 0, 0, 0, OF_NOTHING)
    assert fence_manifest(LAST, 77) == Manifest(61, 5, 10, WATERMARK, 3, 0, OF_NOTHING)
    assert activation_manifest(LAST, 77) == (
        Manifest(60 + SKIPPED, 5, 77, WATERMARK, 3, 0, OF_NOTHING)
    )


def test_a_job_of_an_earlier_input_has_seen_no_offset_of_this_one() -> None:
    job = JobRow("{}", 7, 1, (0, 7))
    moved = decode_job(of_earlier_input(encode_job(job)))
    assert moved == job._replace(offset=7 + EARLIER_INPUT)


def test_what_was_asked_for_in_an_earlier_input_is_older() -> None:
    seqs = [5, 3, 3 + EARLIER_INPUT, 9 + EARLIER_INPUT, 1 + 2 * EARLIER_INPUT]
    assert sorted(seqs, key=age_of) == [seqs[4], seqs[2], seqs[3], 3, 5]
    assert age_of(EARLIER_INPUT - 1) == (0, EARLIER_INPUT - 1)
    assert age_of(EARLIER_INPUT) == (-1, EARLIER_INPUT)


def test_a_store_in_use_is_told_by_its_state() -> None:
    store = ScheduleStore(MemoryMap())
    store.commit(StoredState(5, 6, Manifest(1, 1, 0, 0, 0, 0, bytes(16))))
    assert list(changelog_rows(store)) == []
