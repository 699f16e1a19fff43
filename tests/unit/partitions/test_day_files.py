"""Day files of a partition, turn by turn: on an engine, and on a folder that fails as it likes."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from time import sleep
from typing import Any, Final

import pytest
from fsspec.implementations.local import LocalFileSystem
from prometheus_client import CollectorRegistry

from belfry.engine import triggered
from belfry.engine.effects import Effects
from belfry.outputs.day_store import Asked, DayStore
from belfry.partitions import day_file_changes, day_file_walks
from belfry.partitions.day_file_walks import FAR_EVERY_MS, LEAST_FILE_BYTES, RETRY_MS
from belfry.partitions.day_files import MOST_LEFT, DayFileTurns
from belfry.store.layout.day_files import read_file
from belfry.store.layout.day_reference import DAY_MS
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import away
from belfry.telemetry.day_file_metrics import DayFileMetrics
from belfry.telemetry.metric_maker import MetricMaker
from tests.unit.engine.driver import T0, Driver

FAR: Final = T0 // DAY_MS * DAY_MS + 30 * DAY_MS
BYTES: Final = 20_000
A_DAY: Final = LEAST_FILE_BYTES // BYTES + 1


class Folder(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A folder that refuses what a test names."""

    cachable = False
    refused: set[str]

    def cat_file(self, path: str, **given: Any) -> bytes:
        if "read" in self.refused:
            raise OSError("the folder is away")
        return bytes(super().cat_file(path, **given))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if "write" in self.refused:
            raise OSError("the folder is full")
        super().makedirs(path, exist_ok=exist_ok)


class Tier:
    """A partition with day files: `turn` does what its loop does in a step."""

    def __init__(self, folder: Path, after_days: int = 7) -> None:
        self.driver = Driver()
        self.files = Folder()
        self.files.refused = set()
        self.folder = folder
        self.registry = CollectorRegistry()
        store = DayStore(self.files, str(folder))
        self.turns = DayFileTurns(store, 3, after_days, DayFileMetrics(MetricMaker(self.registry)))
        self.now_ms, self.wall_ms = 0.0, T0

    def ask(self, schedule_id: str, at: int | None = FAR, size: int = BYTES, **fields: Any) -> None:
        payload = schedule_id.encode().ljust(size, b".")
        self.driver.ask(**{"schedule_id": schedule_id, "at": at, "payload": payload, **fields})
        self.driver.step(self.wall_ms, fire=False)

    def turn(self, *, commit: bool = True) -> Effects | None:
        """One turn, a second after the last one."""
        self.now_ms += 1_000
        asked = self.turns._asked
        while asked is not None and not asked.over():
            sleep(0.001)
        found = self.turns.add_to(self.driver.engine, None, self.now_ms, lambda: self.wall_ms)
        if found is not None and not found.empty:
            self.driver.end(self.wall_ms, commit=commit)
        return found

    def settle(self, turns: int = 30) -> None:
        for _ in range(turns):
            self.turn()

    def again(self) -> None:
        """Let it walk through all once more."""
        self.now_ms += FAR_EVERY_MS
        self.settle()

    def triggered(self, schedule_id: str) -> tuple[list[bytes | None], list[str]]:
        """What a TRIGGER fires, and the codes of its refusal."""
        self.driver.ask(action="TRIGGER", schedule_id=schedule_id)
        step = self.driver.step(self.wall_ms)
        return [shot.value for shot in step.shots], [code for code in step.codes if code]

    def away(self) -> list[str]:
        """Ids of schedules whose payloads lie in files."""
        records = self.driver.engine._store.all_pending()
        return sorted(decode_pending(each).schedule_id.decode() for each in records if away(each))

    def there(self) -> list[Path]:
        return sorted(each for each in self.folder.rglob("*") if each.is_file())

    def fired(self, at_ms: int) -> dict[str, bytes]:
        self.wall_ms = at_ms
        found: dict[str, bytes] = {}
        while (due_ms := self.driver.engine.next_due_ms()) is not None and due_ms <= at_ms:
            found |= {shot.id: shot.value or b"" for shot in self.driver.step(at_ms, take=0).shots}
        return found

    def counted(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def files_of(self, outcome: str) -> float:
        return self.counted("belfry_day_files_total", outcome=outcome)


@pytest.fixture
def tier(tmp_path: Path) -> Tier:
    return Tier(tmp_path)


def filled(tier: Tier, at: int = FAR, name: str = "s", number: int = A_DAY) -> list[str]:
    ids = [f"{name}{each}" for each in range(number)]
    for each in ids:
        tier.ask(each, at)
    return ids


def payload(schedule_id: str) -> bytes:
    return schedule_id.encode().ljust(BYTES, b".")


def test_payloads_go_and_are_back_a_day_before_they_are_due(tier: Tier) -> None:
    ids, others = filled(tier), filled(tier, FAR + DAY_MS, "t")
    tier.ask("near", T0 + 6 * DAY_MS)
    tier.settle()
    assert tier.away() == sorted(ids + others)
    assert [each.parent.name for each in tier.there()] == ["2027-02-14", "2027-02-15"]
    assert all(each.name.startswith("3-") for each in tier.there())
    assert tier.counted("belfry_day_file_payloads_total", way="aside") == 2 * A_DAY
    tier.wall_ms = FAR - DAY_MS - 1
    tier.settle()
    assert tier.away() == sorted(ids + others)
    tier.wall_ms = FAR - DAY_MS
    tier.again()
    assert tier.away() == sorted(others)
    assert tier.files_of("read") == 1
    found = tier.fired(FAR)
    assert {each: found[each] for each in ids} == {each: payload(each) for each in ids}
    assert tier.counted("belfry_day_file_payloads_total", way="back") == A_DAY


def test_what_is_too_little_for_a_file_stays(tier: Tier) -> None:
    tier.ask("alone")
    tier.settle()
    assert (tier.away(), tier.there()) == ([], [])
    ids = filled(tier)
    tier.again()
    assert tier.away() == ["alone", *ids]


def test_a_full_file_is_followed_by_another(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belfry.engine.day_files.FILE_BYTES", 100_000)
    monkeypatch.setattr(day_file_changes, "STEP_ROWS", 2)
    ids = filled(tier, number=14)
    tier.settle(60)
    assert (tier.away(), len(tier.there())) == (sorted(ids), 3)
    tier.wall_ms = FAR - 1
    tier.again()
    tier.settle(60)
    assert tier.away() == []
    assert tier.fired(FAR) == {each: payload(each) for each in ids}


def test_a_file_is_there_before_a_row_refers_to_it(tier: Tier) -> None:
    ids = filled(tier)
    while not tier.there():
        assert tier.away() == []
        tier.turn()
    # The worker is killed: its file is there, and no row has changed.
    tier.turns.begin()
    tier.settle()
    assert tier.away() == ids
    assert len(tier.there()) == 2
    assert tier.fired(FAR) == {}
    tier.settle()
    assert tier.fired(FAR + 1) == {each: payload(each) for each in ids}


def test_a_store_that_takes_nothing_leaves_payloads_where_they_are(tier: Tier) -> None:
    tier.files.refused = {"write"}
    ids = filled(tier)
    tier.settle()
    assert (tier.away(), tier.there()) == ([], [])
    assert tier.files_of("write_failed") >= 1
    tier.files.refused = set()
    tier.now_ms += RETRY_MS
    tier.settle()
    assert tier.away() == ids


def test_a_store_that_gives_nothing_back_is_not_trusted(tier: Tier) -> None:
    """It takes a file, and does not show it: nothing refers to such a file."""
    tier.files.refused = {"read"}
    filled(tier)
    tier.settle()
    assert tier.away() == []


def test_what_cannot_be_read_waits_and_fires_late_and_all_else_in_time(tier: Tier) -> None:
    ids = filled(tier)
    tier.settle()
    tier.ask("here", FAR, payload=b"here")
    tier.files.refused = {"read"}
    tier.wall_ms = FAR - 1
    tier.again()
    assert tier.files_of("read_failed") >= 2
    assert tier.fired(FAR) == {"here": b"here"}
    tier.settle()
    assert tier.driver.engine.pending == A_DAY
    assert tier.counted("belfry_day_files_awaited", partition="3") == 1
    tier.files.refused = set()
    tier.now_ms += RETRY_MS
    tier.settle()
    assert tier.fired(FAR + 5_000) == {each: payload(each) for each in ids}
    tier.turn()
    assert tier.counted("belfry_day_files_awaited", partition="3") == 0


@pytest.mark.parametrize("how", ["cut", "changed", "gone", "empty", "short", "named"])
def test_a_damaged_file_fires_nothing_wrong_and_holds_up_no_other(tier: Tier, how: str) -> None:
    ids, others = filled(tier), filled(tier, FAR + DAY_MS, "t")
    tier.settle()
    path = tier.there()[0]
    whole = path.read_bytes()
    broken = {"cut": whole[:-1], "changed": whole.replace(b"s0...", b"s0..!"), "empty": b""}
    # Cut between two payloads; and a name is another one.
    broken |= {"short": whole[: -BYTES - len(b"size__demo/s0")]}
    broken |= {"named": whole.replace(b"demo/s0", b"demo/z0")}
    path.unlink() if how == "gone" else path.write_bytes(broken[how])
    tier.wall_ms = FAR + DAY_MS - 1
    assert tier.fired(tier.wall_ms) == {}
    tier.again()
    found = tier.fired(FAR + DAY_MS)
    assert {each: found[each] for each in others} == {each: payload(each) for each in others}
    wrong = ids if how != "changed" else ["s0"]
    assert sorted(set(ids) - set(found)) == wrong
    assert tier.files_of("damaged" if how == "changed" else "read_failed") >= 1
    assert tier.counted("belfry_day_files_awaited", partition="3") == 1
    path.write_bytes(whole)
    tier.now_ms += RETRY_MS
    tier.settle()
    late = tier.fired(FAR + DAY_MS + 1)
    assert {**found, **late} == {each: payload(each) for each in ids + others}


def test_a_step_that_is_rolled_back_is_done_again(tier: Tier) -> None:
    ids = filled(tier)
    rolled_back = 0
    while not tier.away():
        found = tier.turn(commit=rolled_back >= 3)
        rolled_back += found is not None and not found.empty
    assert rolled_back == 4
    tier.settle()
    assert tier.counted("belfry_day_file_payloads_total", way="aside") == A_DAY
    tier.wall_ms, rolled_back = FAR - 1, 0
    tier.now_ms += FAR_EVERY_MS
    while tier.away():
        found = tier.turn(commit=rolled_back >= 3)
        rolled_back += found is not None and not found.empty
    assert tier.fired(FAR) == {each: payload(each) for each in ids}


def test_with_no_days_all_comes_back(tier: Tier) -> None:
    ids = filled(tier)
    tier.settle()
    tier.turns._walks._after_days = 0
    tier.again()
    assert tier.away() == []
    tier.ask("more")
    tier.again()
    assert tier.away() == []
    assert sorted(tier.fired(FAR)) == ["more", *ids]


def test_with_no_days_what_is_paused_comes_back_too(
    tier: Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its payload is lost to who takes the store away then, as the manual says."""
    monkeypatch.setattr(day_file_walks, "LOOK_ROWS", 3)
    ids = filled(tier)
    tier.settle()
    for each in ids:
        tier.ask(each, action="PAUSE", at=None, payload=None)
    tier.again()
    assert tier.away() == ids
    tier.turns._walks._after_days = 0
    tier.again()
    assert tier.away() == []


def test_a_silent_store_is_not_asked_for_ever(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, asked = Event(), list[str]()

    def silent(path: str, **_given: Any) -> bytes:
        asked.append(path)
        goes_on.wait(30)
        return Path(path).read_bytes()

    ids = filled(tier)
    tier.settle()
    monkeypatch.setattr(Asked.__init__, "__defaults__", (0.01,))
    monkeypatch.setattr(tier.files, "cat_file", silent)
    tier.wall_ms = FAR - 1
    for _ in range(20):
        tier.now_ms += RETRY_MS
        tier.turn()
    assert len(asked) == MOST_LEFT
    assert tier.fired(FAR) == {}
    goes_on.set()
    for _ in range(20):
        sleep(0.01)
        tier.now_ms += RETRY_MS
        tier.turn()
    assert tier.fired(FAR + 1) == {each: payload(each) for each in ids}


def test_a_file_has_what_its_rows_had(tier: Tier) -> None:
    ids = filled(tier)
    tier.settle()
    (path,) = tier.there()
    entries = list(read_file(path.read_bytes()))
    assert [(each.name, each.payload) for each in entries] == [
        (f"demo/{each}".encode(), payload(each)) for each in ids
    ]


def test_nothing_is_asked_of_the_store_where_nothing_is_far_ahead(tier: Tier) -> None:
    for number in range(20):
        tier.ask(f"{number}", T0 + DAY_MS)
    tier.settle()
    assert tier.there() == []
    assert tier.files_of("written") == tier.files_of("read") == 0


def test_a_trigger_brings_a_file_back_and_fires_when_it_is_sent_again(tier: Tier) -> None:
    ids, others = filled(tier), filled(tier, FAR + DAY_MS, "t")
    tier.settle()
    assert tier.triggered("s0") == ([], ["payload_away"])
    tier.settle()
    assert tier.away() == sorted(others), "one file is read, and no other"
    assert tier.triggered("s0") == ([payload("s0")], [])
    assert tier.counted("belfry_day_files_awaited", partition="3") == 0
    tier.again()
    assert tier.away() == sorted(ids + others)


def test_triggers_ask_for_a_few_files_at_once(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggered, "MOST_RECALLED", 1)
    filled(tier), filled(tier, FAR + DAY_MS, "t")
    tier.settle()
    tier.files.refused = {"read"}
    for name in ("s0", "t0", "s1"):
        assert tier.triggered(name) == ([], ["payload_away"])
    assert len(tier.driver.engine.day_files.recalled) == 1
    tier.settle()
    assert not tier.driver.engine.day_files.recalled, "a store that is away is not asked for ever"
    assert tier.files_of("read_failed") == 1
