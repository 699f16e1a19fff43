"""Steps of a partition: positions, manifests, and roll-backs that leave no trace."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from belfry.engine.batches import GapInSource
from belfry.firing.due import ScanPosition
from belfry.store.layout import keys
from belfry.store.layout.manifests import decode_manifest
from belfry.wire.batch import SourceBatch
from tests.unit.engine.driver import HOUR, T0, Driver


def test_a_batch_has_to_begin_where_the_last_one_ended() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    for start in (0, 2):
        with pytest.raises(GapInSource, match=f"expected offset 1, the batch begins at {start}"):
            driver.engine.accept(SourceBatch(start, start + 1, []), T0)


def test_offsets_without_records_move_the_position() -> None:
    driver = Driver()
    effects = driver.engine.accept(SourceBatch(0, 7, []), T0)
    assert not effects.empty
    driver.end(T0)
    assert driver.engine.position == driver.engine.manifest.position == 7


def test_an_empty_batch_is_no_reason_for_a_transaction() -> None:
    driver = Driver()
    assert driver.engine.accept(SourceBatch(0, 0, []), T0).empty


def test_a_new_partition_begins_where_the_source_does() -> None:
    driver = Driver()
    driver.engine.begin_at(40)
    assert driver.engine.position == 40
    driver.engine.accept(SourceBatch(40, 41, [(40, T0, None, b"{}", None)]), T0)
    driver.end(T0)
    assert driver.engine.manifest.position == 41


def test_a_partition_with_state_has_its_position() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    with pytest.raises(AssertionError):
        driver.engine.begin_at(40)


def test_manifests_count_transactions_without_gaps() -> None:
    driver = Driver()
    for number in range(1, 5):
        driver.ask(schedule_id=f"{number}", at=T0 + HOUR)
        manifest = driver.step(T0 + number).effects.manifest
        assert manifest is not None
        assert (manifest.txn_seq, manifest.position, manifest.pending) == (number,) * 3
        assert manifest.watermark_ms == T0 + number


def test_the_manifest_is_the_last_row_of_its_step() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    effects = driver.step(T0).effects
    key, row = list(effects.rows.items())[-1]
    assert key == keys.manifest_key(1)
    assert row is not None
    assert decode_manifest(row) == effects.manifest


def test_a_new_owner_scans_from_the_watermark_on() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    driver.run(T0 + 9)
    driver.start(driver.rows)
    assert driver.engine._stands.scan == ScanPosition.at(T0 + 9)


@pytest.mark.parametrize("lends", [False, True])
def test_the_manifest_tells_whether_its_owner_answers_reads_alone(lends: bool) -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.engine.accept(driver.batch(), T0)
    assert driver.engine.seal(1, read_lease=lends).read_lease == lends


def test_the_manifest_proves_what_was_fired() -> None:
    driver = Driver()
    for schedule_id in "ab":
        driver.ask(schedule_id=schedule_id, at=T0 + 5)
    driver.step(T0)
    step = driver.step(T0 + 5)
    ids = [shot.header("belfry-fire-id") or b"" for shot in step.shots]
    manifest = step.effects.manifest
    assert manifest is not None
    assert (manifest.fired, manifest.owner_epoch) == (2, 1)
    assert manifest.digest == blake2b(b"".join(ids), digest_size=16).digest()


def test_the_first_step_of_an_owner_keeps_the_settings() -> None:
    driver = Driver()
    effects = driver.engine.claim(b"settings")
    assert not effects.empty
    assert effects.rows[keys.SETTINGS_KEY] == b"settings"
    driver.end(T0)
    assert driver.rows.get(keys.NAMED_PREFIX + keys.SETTINGS_KEY) == b"settings"
    assert driver.engine.claim(None).rows == {}


def test_a_roll_back_leaves_no_trace() -> None:
    #  committed   a@5, b@HOUR, late c        rolled back   a fires, b goes, d comes, e is late
    driver = Driver()
    driver.step(T0)
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.ask(schedule_id="b", at=T0 + HOUR)
    driver.ask(schedule_id="c", at=T0 - 5)
    driver.step(T0)
    before = dict(driver.rows.scan(b"", b"\xff"))
    engine = driver.engine
    facts = (engine.manifest, engine.position, engine.pending, engine.next_due_ms())

    driver.ask(schedule_id="b", action="CANCEL")
    driver.ask(schedule_id="d", at=T0 + 1, request_id="r")
    driver.ask(schedule_id="e", at=T0 - 5)
    first = driver.step(T0 + 7, commit=False)
    assert first.ids == ["c", "a"]
    assert dict(driver.rows.scan(b"", b"\xff")) == before
    assert (engine.manifest, engine.position, engine.pending, engine.next_due_ms()) == facts

    again = driver.step(T0 + 7)
    assert again.effects.fired == first.effects.fired
    assert again.outcomes == first.outcomes
    assert driver.run(T0 + 8) == ["e", "d"]


def test_a_step_after_a_roll_back_has_the_same_number() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    assert [driver.step(T0, commit=False).effects.manifest for _ in range(2)][1] is not None
    manifest = driver.step(T0).effects.manifest
    assert manifest is not None
    assert manifest.txn_seq == 1


def test_a_restart_goes_on_where_the_last_commit_was() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    before = driver.engine
    after = driver.start(driver.rows)
    assert after.manifest == before.manifest
    assert (after.position, after.pending, after.next_due_ms()) == (1, 1, T0 + 5)
    assert driver.run(T0 + 5) == ["a"]


def test_the_sweep_ends_what_is_over() -> None:
    #  T0       1 h            24 h
    #  verdict  ► tombstone    marker ► tombstone
    driver = Driver()
    driver.ask(at=T0 + 5, request_id="r1")
    driver.step(T0)
    driver.step(T0 + 5)
    driver.ask(action="CANCEL", schedule_id="none", timestamp_ms=T0 + HOUR)
    driver.step(T0 + HOUR)
    assert driver.sweep(T0 + HOUR - 1).empty
    rows = driver.sweep(T0 + HOUR).rows
    assert rows[keys.request_key("demo", "r1")] is None
    assert b"demo/a" not in rows
    day_ms = T0 + 5 + 24 * HOUR
    driver.ask(day_ms, action="CANCEL", schedule_id="none")
    driver.step(day_ms)
    assert driver.sweep(day_ms - 1).empty
    assert driver.sweep(day_ms).rows[b"demo/a"] is None
    assert list(driver.rows.scan(keys.NAMED_PREFIX, keys.NAMED_END)) == []


def test_the_sweep_spares_what_its_own_step_changed() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0)
    driver.step(T0 + 5)
    now_ms = T0 + 25 * HOUR
    driver.ask(now_ms, action="CANCEL", schedule_id="none")
    driver.step(now_ms)
    driver.ask(at=now_ms + 5)
    driver.engine.accept(driver.batch(), now_ms)
    driver.engine.sweep(now_ms, 100)
    driver.end(now_ms)
    assert driver.engine.pending == 1
    assert driver.run(now_ms + 5) == ["a"]


def test_the_sweep_walks_round_and_round_a_few_rows_at_a_time() -> None:
    driver = Driver()
    for number in range(10):
        driver.ask(schedule_id=f"{number}", at=T0 + 5)
    driver.step(T0)
    driver.run(T0 + 5)
    driver.ask(T0 + 25 * HOUR, schedule_id="waits", at=T0 + 99 * HOUR)
    driver.step(T0 + 25 * HOUR)
    for _ in range(5):
        driver.sweep(T0 + 25 * HOUR, at_most=3)
    assert [key for key, _ in driver.rows.scan(b"k", b"l")] == [b"kdemo/waits"]
