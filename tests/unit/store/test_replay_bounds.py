"""What a replay holds, how far it has come, and which gaps of numbers are holes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from belfry.store import replay as replaying
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.layout.locations import Location
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.records import UnknownFormat
from belfry.store.layout.verdicts import HEAD_OF_ANSWERED
from belfry.store.net import Change
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import HOUR, T0, Driver

IDENTITY = Identity("c", "l", "i")


def manifest(number: int) -> Change:
    return keys.manifest_key(number), encode_manifest(Manifest(number, 1, 0, 0, 0, 0, bytes(16)))


def answer(number: int) -> Change:
    return keys.REQUEST_PREFIX + b"demo/%d" % number, HEAD_OF_ANSWERED + bytes(60)


def begin(rows: MemoryMap) -> Replay:
    return Replay(ScheduleStore(rows))


def apply(replay: Replay, *changes: Change) -> Replay:
    """Fold these behind what was read."""
    replay.apply(changes, range(replay.offset, replay.offset + len(changes)), T0)
    return replay


# -- what is held ----------------------------------------------------------------------------------


def test_a_new_replay_holds_nothing_and_folds_nothing() -> None:
    replay = begin(MemoryMap())
    assert (replay.held, replay.offset, replay.begun) == ((0, 0), 0, False)
    replay.fold(T0)
    assert (replay.offset, replay.manifest) == (0, None)


def test_what_is_held_is_counted_until_it_is_folded() -> None:
    replay = begin(MemoryMap())
    size = len(answer(1)[1] or b"")
    replay.hold([answer(1), (b"a/gone", None)], [10, 11])
    assert replay.held == (2, size)
    whole = manifest(1)
    replay.hold([answer(2), whole, answer(3)], [12, 15, 16])
    assert replay.held == (5, 3 * size + len(whole[1] or b""))
    replay.fold(T0)
    # It goes up to the last manifest; what follows stays.
    assert (replay.offset, replay.held, list(replay.unclosed)) == (16, (1, size), [16])
    assert replay.leave_unclosed() == (answer(3)[0],)
    assert (replay.held, list(replay.unclosed)) == ((0, 0), [])
    replay.check()


def test_a_long_stretch_without_a_manifest_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "MOST_BUFFERED", 2)
    rows = MemoryMap()
    replay = apply(begin(rows), answer(1), answer(2))
    assert (replay.offset, replay.held[0]) == (0, 2), "so many are kept"
    replay.apply([answer(3)], [2], T0)
    assert (replay.offset, replay.held) == (3, (0, 0))
    assert replay.manifest_at == -1
    with pytest.raises(HoleInChangelog, match=r"^3 records follow the last manifest$"):
        replay.check()
    # The next process knows of them, and counts on.
    later = begin(rows)
    later.hold([answer(4)], [3])
    with pytest.raises(HoleInChangelog, match=r"^4 records follow the last manifest$"):
        later.check()
    later.apply([answer(5), answer(6)], [4, 5], T0)
    with pytest.raises(HoleInChangelog, match=r"^6 records follow the last manifest$"):
        later.check()
    apply(later, manifest(1)).check()


def test_a_replay_that_has_read_one_record_has_begun() -> None:
    rows = MemoryMap()
    apply(begin(rows), manifest(1))
    replay = begin(rows)
    assert (replay.begun, replay.offset, replay.written_ms) == (True, 1, T0)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 5])
def test_a_gap_is_a_hole_as_far_back_as_manifests_are_kept(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MANIFEST_SLOTS", 4)
    rows = MemoryMap()
    replay = apply(begin(rows), manifest(before), manifest(before + 2))
    with pytest.raises(HoleInChangelog, match=f"{before + 2} follows transaction {before}$"):
        replay.check()
    apply(replay, manifest(before + 3))
    for each in (replay, begin(rows)):
        with pytest.raises(HoleInChangelog):
            each.check()
    apply(replay, manifest(before + 4)).check()
    begin(rows).check()


@pytest.mark.parametrize(("last", "again"), [(5, 5), (5, 4), (0, 0)])
def test_a_number_that_comes_again_is_a_hole_however_far_back(
    last: int, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MANIFEST_SLOTS", 2)
    numbers = [*range(last + 1), *range(again, 20)]
    replay = apply(begin(MemoryMap()), *map(manifest, numbers))
    with pytest.raises(HoleInChangelog, match=f"transaction {again} follows transaction {last}$"):
        replay.check()


def test_a_state_that_meets_its_own_number_again_is_given_up_at_once() -> None:
    rows = MemoryMap()
    apply(begin(rows), manifest(5))
    with pytest.raises(HoleInChangelog, match=r"transaction 5 follows transaction 5$"):
        apply(begin(rows), manifest(5))


def test_an_old_state_goes_on_over_what_compaction_has_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys, "MANIFEST_SLOTS", 2)
    rows = MemoryMap()
    apply(begin(rows), manifest(5))
    apply(begin(rows), *map(manifest, range(50, 53))).check()


def test_a_state_that_knew_no_identity_goes_on_unless_the_changelog_was_recovered() -> None:
    for generation in (0, 1):
        rows = MemoryMap()
        apply(begin(rows), manifest(1))
        told = keys.IDENTITY_KEY, encode_identity(IDENTITY._replace(generation=generation))
        if generation == 0:
            assert apply(begin(rows), told, manifest(2)).identity == IDENTITY
            continue
        with pytest.raises(HoleInChangelog) as raised:
            apply(begin(rows), told, manifest(2))
        assert str(raised.value) == (
            "the changelog was recovered (generation 1) since this state was written"
        )


def test_rows_without_a_manifest_tell_whose_the_changelog_is() -> None:
    replay = begin(MemoryMap())
    replay.hold([(keys.IDENTITY_KEY, encode_identity(IDENTITY)), answer(1)], [0, 1])
    assert replay.identity == IDENTITY
    replay.hold([(keys.IDENTITY_KEY, None)], [2])
    assert replay.identity == IDENTITY, "a tombstone takes nothing back"


# -- many at once ----------------------------------------------------------------------------------


class Counting(ScheduleStore):
    """A store that counts how often it is changed, and by how many rows at once."""

    def __init__(self, rows: MemoryMap) -> None:
        super().__init__(rows)
        self.calls: Counter[str] = Counter()
        self.most_taken = 0

    def lay_rows(self, rows: Mapping[bytes, bytes | None]) -> None:
        self.calls["lay_rows"] += 1
        super().lay_rows(rows)

    def move(self, name: bytes, record: bytes, location: Location) -> None:
        self.calls["move"] += 1
        super().move(name, record, location)

    def committed(self, names: Sequence[bytes]) -> Sequence[bytes | None]:
        self.calls["of its own"] += sum(name[:1] == b"\0" for name in names)
        return super().committed(names)

    def remove(self, name: bytes, row: bytes) -> None:
        self.calls["remove"] += 1
        super().remove(name, row)

    def take(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self.calls["take"] += 1
        self.most_taken = max(self.most_taken, len(rows))
        super().take(rows)


def test_what_comes_into_the_timeline_and_leaves_it_is_laid_many_at_once() -> None:
    driver, store = Driver(), Counting(MemoryMap())
    replay, folds = Replay(store), 0
    for again in range(2):
        # The second time markers of the first one lie under the names.
        for number in range(40):
            request_id = f"{again}-{number}"
            driver.ask(schedule_id=f"{number}", request_id=request_id, at=T0 + number)
        driver.step(T0 - 1, fire=False)
        for until_ms in (T0 - 1, T0 + 20, T0 + 40):
            driver.run(until_ms)
            apply(replay, *driver.changelog[replay.offset :])
            folds += 1
    replay.check()
    assert (store.calls["remove"], store.calls["move"], store.calls["of its own"]) == (0, 0, 0)
    # A fold of answers, markers and what waits is one; rows of the engine's own come apart.
    own = sum(key[:1] == b"\0" and key[:2] != keys.REQUEST_PREFIX for key, _ in driver.changelog)
    assert store.calls["lay_rows"] <= folds + own
    answers = [row for row in driver.changelog if row[0][:2] == keys.REQUEST_PREFIX]
    assert len(answers) == 80
    assert all(store.named(key) == value for key, value in answers)


def test_what_lay_aside_is_folded_with_all_that_follows_it() -> None:
    """Paused schedules: some are resumed, some are cancelled, others paused anew."""
    driver, rows = Driver(), MemoryMap()
    names = [f"{number}" for number in range(8)]
    for name in names:
        driver.ask(schedule_id=name, at=T0 + HOUR)
    driver.step(T0)
    for name in names[:6]:
        driver.ask(schedule_id=name, action="PAUSE")
    driver.step(T0 + 1)
    apply(begin(rows), *driver.changelog)
    changes = {"0": "RESUME", "1": "CANCEL", "2": "RESUME", "3": "CANCEL", "6": "PAUSE"}
    for name, action in changes.items():
        driver.ask(schedule_id=name, action=action)
    driver.ask(schedule_id="7", action="CANCEL")
    driver.ask(schedule_id="new", at=T0 + HOUR)
    driver.step(T0 + 2)
    replay = begin(rows)
    apply(replay, *driver.changelog[replay.offset :]).finish(T0 + 3)
    for prefix in (b"k", b"t"):
        end = keys.following(prefix)
        assert dict(rows.scan(prefix, end)) == dict(driver.rows.scan(prefix, end))
    driver.start(rows)
    assert sorted(driver.run(T0 + HOUR)) == ["0", "2", "new"]


def test_what_is_overdue_goes_to_the_backlog_a_portion_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replaying, "SETTLE_ROWS", 3)
    driver = Driver()
    driver.note(held="its topic is missing")
    for number in range(10):
        driver.ask(schedule_id=f"{number}", at=T0 + number)
    driver.step(T0 - 1, fire=False)
    driver.run(T0 + 10)
    store = Counting(MemoryMap())
    replay = Replay(store)
    apply(replay, *driver.changelog)
    replay.finish(T0 + 11)
    assert (store.most_taken, store.calls["take"]) == (3, 4)
    assert [key for key, _ in store.timeline(keys.FIRST_SORT_KEY, T0 + 10)] == []
    driver.note(held="")
    driver.start(store._rows)  # type: ignore[arg-type]
    assert driver.run(T0 + 10) == [f"{number}" for number in range(10)]


@pytest.mark.parametrize("size", [2, 10, 59])
def test_a_manifest_that_was_cut_off_is_of_an_unknown_format(size: int) -> None:
    replay, (key, whole) = begin(MemoryMap()), manifest(1)
    replay.hold([(key, (whole or b"")[:size])], [0])
    # Whoever folds once more what is held, before it gives the store up, is told the same.
    for _ in range(2):
        with pytest.raises(UnknownFormat, match="cannot be read any further"):
            replay.fold(T0)
