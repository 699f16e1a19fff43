"""Payloads leave their rows for a day file, and come back: nothing else of a schedule changes."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.declared.set_record import RECORDS
from belfry.engine.day_files import Gathered, Place, PutAside, day_after
from belfry.store.layout.day_files import Entry, encode_file, read_file, reference_to
from belfry.store.layout.day_reference import DAY_MS, DayFile
from belfry.store.layout.pending import Away, decode_pending
from belfry.store.layout.pending_bytes import away, payload_bytes
from belfry.store.ordered_map import MemoryMap
from belfry.store.readable import why_unreadable
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import T0, Driver, Step
from tests.unit.engine.test_encrypted_payloads import OLD, let
from tests.unit.engine.test_jobs import begin, finish

PAYLOAD: Final = b'{"order":1}' * 20
FAR: Final = T0 + 30 * DAY_MS
FILE: Final = DayFile(FAR // DAY_MS, 0, b"12345678")
START: Final = Place()


def asked(driver: Driver, **fields: Any) -> Step:
    driver.ask(**{"at": FAR, "payload": PAYLOAD, **fields})
    return driver.step(T0)


def gathered(driver: Driver, at_most: int = 1_000) -> Gathered:
    found = Gathered()
    driver.engine.day_files.gather(START, (0, 0), found, at_most)
    return found


def filed(found: Gathered, file: DayFile = FILE) -> tuple[bytes, list[PutAside]]:
    """The file of what was gathered, and the rows that are to refer to it."""
    payloads = [decode_pending(record).payload or b"" for _, record in found.rows]
    names = [name for name, _ in found.rows]
    data, offsets = encode_file(zip(names, payloads, strict=True))
    rows = [
        PutAside(name, record, reference_to(file, offset, payload))
        for (name, record), offset, payload in zip(found.rows, offsets, payloads, strict=True)
    ]
    return data, rows


def gone(driver: Driver, *, commit: bool = True) -> bytes:
    """Put everything aside that may go; the file."""
    data, rows = filed(gathered(driver))
    driver.engine.put_aside(T0, rows)
    driver.end(T0, commit=commit)
    return data


def back(driver: Driver, data: bytes, now_ms: int = T0) -> int:
    driver.engine.put_back(now_ms, FILE, list(read_file(data)))
    changed = driver.engine.day_files.changed
    if changed:
        driver.end(now_ms)
    return changed


def folded(driver: Driver) -> MemoryMap:
    """What an owner without local state has: the changelog, folded."""
    rows = MemoryMap()
    replay = Replay(ScheduleStore(rows))
    replay.apply(driver.changelog, range(len(driver.changelog)), T0)
    replay.finish(T0)
    return rows


def record_of(driver: Driver, name: bytes = b"demo/a") -> bytes:
    return next(row for key, row in reversed(driver.changelog) if key == name) or b""


def test_a_payload_goes_and_comes_back_to_the_byte() -> None:
    driver = Driver()
    asked(driver, key=b"k", headers=[{"name": "mine", "value": b"1"}], event_type="t")
    before, pending = record_of(driver), driver.engine.pending
    data = gone(driver)
    lean = record_of(driver)
    assert away(lean)
    assert PAYLOAD not in lean
    assert not [row for _, row in driver.rows.scan(b"", b"\xff") if PAYLOAD in row]
    old, new = decode_pending(before), decode_pending(lean)
    assert type(new.payload) is Away
    assert new._replace(payload=PAYLOAD) == old
    assert (driver.engine.pending, payload_bytes(lean)) == (pending, len(PAYLOAD))
    assert why_unreadable(lean) == ""
    assert back(driver, data) == 1
    assert record_of(driver) == before
    assert back(driver, data) == 0
    (shot,) = driver.step(FAR).shots
    assert shot.value == PAYLOAD


@pytest.mark.parametrize(
    "fields",
    [
        {"payload": b"small"},
        {"payload": None},
        {"group": "g"},
        {"kind": "EVERY", "interval_ms": DAY_MS, "at": None},
        {"max_lateness_ms": 1_000},
        {"priority": 3},
        {"kind": "AFTER_ACK", "awaited": "b", "at": None},
        {"http_targets": [{"url": "https://hooks.example/x"}]},
    ],
)
def test_what_has_more_about_it_stays_whole(fields: dict[str, Any]) -> None:
    driver = Driver()
    asked(driver, schedule_id="b", payload=b"")
    asked(driver, **fields)
    assert gathered(driver).rows == []


def test_what_is_encrypted_or_paused_stays_whole() -> None:
    driver = Driver()
    asked(driver, schedule_id="b")
    asked(driver, schedule_id="b", action="PAUSE", at=None)
    let(driver, OLD)
    asked(driver)
    assert gathered(driver).rows == []


def test_what_commands_keep_in_a_payload_stays_whole() -> None:
    """`belfry apply` reads its record from a payload that is due in 2100."""
    driver = Driver()
    asked(driver, schedule_id=RECORDS + "shop", at=T0 + 20_000 * DAY_MS)
    asked(driver, schedule_id="sets/shop", at=T0 + 20_000 * DAY_MS)
    assert [name for name, _ in gathered(driver).rows] == [b"demo/sets/shop"]


def test_one_file_holds_one_day() -> None:
    driver = Driver()
    for number in range(6):
        asked(driver, schedule_id=f"{number}", at=FAR + number * DAY_MS // 3)
    found = Gathered()
    place = driver.engine.day_files.gather(START, (0, 0), found, 1_000)
    days = {decode_pending(record).due_ms // DAY_MS for _, record in found.rows}
    assert days == {found.day}
    assert found.full
    assert place is not None
    rest = Gathered()
    driver.engine.day_files.gather(place, (0, 0), rest, 1_000)
    assert rest.day == FAR // DAY_MS + 1
    names = [name for name, _ in found.rows + rest.rows]
    assert names == sorted(set(names))


def test_a_look_goes_on_where_it_ended() -> None:
    driver = Driver()
    for number in range(5):
        asked(driver, schedule_id=f"{number}")
    found, looks = Gathered(), 0
    place: Place | None = START
    while place is not None:
        place = driver.engine.day_files.gather(place, (0, 0), found, 2)
        looks += 1
    assert (len(found.rows), looks) == (5, 3)


def test_what_an_isolated_tenant_has_waiting_goes_and_comes_back_too() -> None:
    driver = Driver()
    driver.engine._parts.waiting.isolate(b"demo")
    driver.ask(tenant="other", schedule_id="o", at=FAR, payload=PAYLOAD)
    for each in "abc":
        driver.ask(schedule_id=each, at=FAR + ord(each), payload=PAYLOAD)
    driver.step(T0)
    first = Gathered()
    place = driver.engine.day_files.gather(START, (0, 0), first, 1_000)
    assert ([name for name, _ in first.rows], first.full) == ([b"other/o"], True)
    assert place == Place(b"demo")
    found = Gathered()
    assert driver.engine.day_files.gather(place, (FAR + ord("b"), 0), found, 1_000) is None
    assert [name for name, _ in found.rows] == [b"demo/b", b"demo/c"]
    data, rows = filed(found)
    driver.engine.put_aside(T0, rows)
    driver.end(T0)
    look = driver.engine.day_files.lying
    assert look(START, FAR * 2, 100) == (None, Place(b"demo"))
    assert look(Place(b"demo"), FAR * 2, 100)[0] == FILE
    assert back(driver, data) == 2
    assert look(Place(b"demo"), FAR * 2, 100) == (None, None)
    assert sorted(driver.run(FAR + 1_000)) == ["a", "b", "c", "o"]


def test_a_cancel_reaches_what_is_away_and_nothing_comes_back() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    assert asked(driver, action="CANCEL", at=None, payload=None).outcomes == ["CANCELLED"]
    assert back(driver, data) == 0
    assert driver.run(FAR) == []


@pytest.mark.parametrize("payload", [b"another" * 30, PAYLOAD])
def test_an_update_reaches_what_is_away(payload: bytes) -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    step = asked(driver, at=FAR + 5, payload=payload)
    assert step.outcomes == ["UPDATED"]
    assert back(driver, data) == 0
    (shot,) = driver.step(FAR + 5).shots
    assert (shot.value, shot.header("belfry-schedule-version")) == (payload, b"2")


def test_the_same_request_again_changes_nothing() -> None:
    driver = Driver()
    asked(driver)
    gone(driver)
    assert asked(driver).outcomes == ["UNCHANGED"]
    assert away(record_of(driver))
    assert asked(driver, action="CREATE").outcomes == ["CONFLICT"]
    assert asked(driver, payload=PAYLOAD[:-1] + b"x").outcomes == ["UPDATED"]


def test_a_trigger_is_refused_and_fires_no_reference() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    step = asked(driver, action="TRIGGER", at=None, payload=None)
    assert (step.shots, step.codes) == ([], ["payload_away"])
    assert list(driver.engine.day_files.recalled) == [FILE]
    assert not driver.engine.day_files.awaited, "nothing is due, so nobody is called"
    back(driver, data)
    (shot,) = asked(driver, action="TRIGGER", at=None, payload=None).shots
    assert shot.value == PAYLOAD


def test_what_is_not_back_in_time_is_held_then_fires_late_and_whole() -> None:
    driver = Driver()
    asked(driver)
    asked(driver, schedule_id="b", payload=b"here")
    data = gone(driver)
    step = driver.step(FAR)
    assert step.ids == ["b"]
    assert [name for name, _ in step.effects.unreadable] == [b"demo/a"]
    assert list(driver.engine.day_files.awaited) == [FILE]
    # Nothing that is due holds a partition up, and nothing else is done again and again.
    assert driver.engine.next_due_ms() is None
    assert driver.engine.pending == 1
    assert back(driver, data, FAR + 500) == 1
    (shot,) = driver.step(FAR + 500).shots
    assert (shot.id, shot.value) == ("a", PAYLOAD)
    assert driver.engine.pending == 0


@pytest.mark.parametrize("cold", [True, False])
def test_what_is_held_stays_so_under_the_next_owner(cold: bool) -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    driver.step(FAR)
    driver.start(folded(driver) if cold else driver.rows)
    assert driver.run(FAR + 10) == []
    assert list(driver.engine.day_files.awaited) == [FILE]
    assert back(driver, data, FAR + 500) == 1
    assert [shot.value for shot in driver.step(FAR + 500).shots] == [PAYLOAD]


def test_what_is_held_can_be_cancelled_and_replaced() -> None:
    driver = Driver()
    for each in "ab":
        asked(driver, schedule_id=each)
    data = gone(driver)
    driver.step(FAR)
    driver.ask(action="CANCEL", at=None)
    driver.ask(schedule_id="b", at=FAR + 5, payload=b"new")
    assert driver.step(FAR).outcomes == ["CANCELLED", "UPDATED"]
    assert back(driver, data, FAR + 1) == 0
    assert [shot.value for shot in driver.step(FAR + 5).shots] == [b"new"]


def test_a_pause_and_a_resume_keep_it_away() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    assert asked(driver, action="PAUSE", at=None, payload=None).outcomes == ["PAUSED"]
    assert driver.run(FAR) == []
    assert asked(driver, action="RESUME", at=None, payload=None).outcomes == ["RESUMED"]
    assert away(record_of(driver))
    assert driver.run(FAR + 1) == []
    assert back(driver, data, FAR + 2) == 1
    assert driver.run(FAR + 2) == ["a"]


def test_a_paused_one_comes_back_where_it_is() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    asked(driver, action="PAUSE", at=None, payload=None)
    assert back(driver, data) == 1
    assert driver.run(FAR + 1) == []
    asked(driver, action="RESUME", at=None, payload=None)
    (shot,) = driver.step(FAR + 2).shots
    assert shot.value == PAYLOAD


def test_a_step_that_is_rolled_back_has_done_nothing() -> None:
    driver = Driver()
    asked(driver)
    before = record_of(driver)
    data = gone(driver, commit=False)
    assert record_of(driver) == before
    assert gone(driver) == data
    driver.engine.put_back(T0, FILE, list(read_file(data)))
    driver.end(T0, commit=False)
    assert away(record_of(driver))
    assert back(driver, data) == 1


def test_a_row_that_has_changed_since_it_was_gathered_stays() -> None:
    driver = Driver()
    asked(driver)
    _, rows = filed(gathered(driver))
    asked(driver, at=FAR + 1)
    driver.engine.put_aside(T0, rows)
    assert driver.engine.day_files.changed == 0


@pytest.mark.parametrize("other", [PAYLOAD[:-1] + b"x", PAYLOAD[:-1], b""])
def test_bytes_that_are_not_the_payload_are_never_taken_for_it(other: bytes) -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    (entry,) = read_file(data)
    driver.engine.put_back(T0, FILE, [Entry(entry.name, entry.offset, other)])
    assert (driver.engine.day_files.changed, driver.engine.day_files.damaged) == (0, 1)
    assert driver.run(FAR) == []
    assert back(driver, data, FAR + 1) == 1
    assert [shot.value for shot in driver.step(FAR + 1).shots] == [PAYLOAD]


def test_a_file_that_is_not_the_one_changes_nothing() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    driver.engine.put_back(T0, FILE._replace(number=b"87654321"), list(read_file(data)))
    assert driver.engine.day_files.changed == 0


def test_what_is_due_soon_is_found_by_its_file() -> None:
    driver = Driver()
    asked(driver, payload=b"here")
    asked(driver, schedule_id="b")
    gone(driver)
    rows = driver.engine.day_files
    assert rows.lying(START, FAR - 1, 100) == (None, None)
    assert rows.lying(START, FAR, 1) == (None, Place(b"", (FAR, 1)))
    assert rows.lying(Place(b"", (FAR, 1)), FAR, 1) == (FILE, Place(b"", (FAR, 1)))
    assert rows.lying(START, FAR, 100, {FILE}) == (None, None)


def test_the_first_day_is_whole() -> None:
    noon = T0 // DAY_MS * DAY_MS + DAY_MS // 2
    assert day_after(noon, 7) == (T0 // DAY_MS * DAY_MS + 8 * DAY_MS, 0)
    assert day_after(noon - DAY_MS // 2, 7)[0] - (noon - DAY_MS // 2) == 7 * DAY_MS


def test_a_job_that_encrypts_payloads_anew_refuses_it_and_encrypts_no_reference() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    lean = record_of(driver)
    let(driver, OLD)
    begin(driver, "REKEY")
    assert finish(driver)[0] == "REJECTED a"
    assert record_of(driver) == lean
    assert back(driver, data) == 1
    assert [shot.value for shot in driver.step(FAR).shots] == [PAYLOAD]


def test_a_move_takes_what_is_away_along() -> None:
    driver = Driver()
    asked(driver)
    data = gone(driver)
    begin(driver, "MOVE", move_ms=-DAY_MS)
    finish(driver)
    moved = record_of(driver)
    assert (away(moved), decode_pending(moved).due_ms) == (True, FAR - DAY_MS)
    assert back(driver, data) == 1
    (shot,) = driver.step(FAR - DAY_MS).shots
    assert shot.value == PAYLOAD
