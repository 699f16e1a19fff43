"""`belfry day-files sweep`, and payloads that exports read back: what needs no broker."""

from __future__ import annotations

import os
from pathlib import Path
from time import time
from typing import Any, Final

import orjson
import pytest
from fsspec.implementations.local import LocalFileSystem

from belfry.cli import day_files
from belfry.cli.day_files import whole
from belfry.cli.entry import main
from belfry.cli.failures import CommandError
from belfry.client.export import Fold
from belfry.client.portable import UnreadableSchedule, portable
from belfry.engine.day_files import PutAside
from belfry.outputs.day_store import DayStore
from belfry.store.layout.day_files import encode_file, payload_in, reference_to, without_payload
from belfry.store.layout.day_reference import DAY_MS, DayFile
from belfry.store.row_judge import Judge
from tests.unit.cli.test_encrypted_payloads import looked_up
from tests.unit.engine.driver import T0, Driver

TODAY: Final = int(time() * 1000) // DAY_MS
LEFT: Final = ("3-00000000000000aa.day.part", "3-00000000000000ab.day.part", "notes.part")
PAYLOAD: Final = b"a payload that is worth a file " * 5


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DayStore:
    monkeypatch.setenv("BELFRY_DAY_STORE", f"file://{tmp_path}")
    return DayStore(LocalFileSystem(), str(tmp_path))


def written(store: DayStore, day: int, number: int = 0) -> DayFile:
    file = DayFile(day, 3, number.to_bytes(8, "big"))
    store.write(file, b"x" * 100)
    return file


def sweep(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> dict[str, Any] | str:
    assert main(["day-files", "sweep", "--output", "json", *arguments]) == code
    shown = capsys.readouterr()
    return shown.err if code else orjson.loads(shown.out)


def test_a_sweep_removes_what_is_over_and_nothing_waits_for(
    store: DayStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over, waited = written(store, TODAY - 9), written(store, TODAY - 9, 1)
    ahead = [written(store, TODAY + 30), written(store, TODAY), written(store, TODAY - 5)]
    monkeypatch.setattr(day_files, "_referred", lambda _session: {waited})
    told = {"ahead": 3, "kept": 1, "over": 1, "unfinished": 0, "bytes": 100, "removed": 0}
    assert sweep(capsys) == told
    assert len(list(store.all())) == 5
    assert sweep(capsys, "--apply") == {**told, "removed": 1}
    assert {each.file for each in store.all()} == {waited, *ahead}
    assert over not in {each.file for each in store.all()}


def test_what_a_kill_left_unfinished_goes_once_it_is_old(
    store: DayStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its day is; one that is being written stays, and so do strangers' files."""
    monkeypatch.setattr(day_files, "_referred", lambda _session: set())
    kept = Path(store.path_of(written(store, TODAY + 30)))
    old, young, mine = (kept.with_name(each) for each in LEFT)
    for path, days in ((old, 8), (young, 6), (mine, 8)):
        path.write_bytes(b"x" * 10)
        at = time() - days * 86_400
        os.utime(path, (at, at))
    told = {"ahead": 1, "kept": 0, "over": 0, "unfinished": 1, "bytes": 10, "removed": 0}
    assert sweep(capsys) == told
    assert old.exists()
    assert sweep(capsys, "--apply") == {**told, "removed": 1}
    assert sorted(kept.parent.iterdir()) == sorted([kept, young, mine])


def test_a_sweep_needs_a_day_and_a_store(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "24h or more" in sweep(capsys, "--older-than", "1h", code=2)
    monkeypatch.delenv("BELFRY_DAY_STORE", raising=False)
    assert "BELFRY_DAY_STORE" in sweep(capsys, code=2)


def test_other_files_of_the_folder_are_left_alone(store: DayStore, tmp_path: Path) -> None:
    for name in ("notes.txt", "2020-01-01/notes.txt", "2020-99-01/3-0000000000000001.day"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert list(store.all()) == []


def away_record(store: DayStore, name: str = "a") -> tuple[bytes, bytes, DayFile]:
    """A record with its payload, the same without, and the file that it refers to."""
    driver = Driver()
    driver.ask(schedule_id=name, at=T0 + DAY_MS, payload=name.encode() + PAYLOAD)
    driver.step(T0)
    record = dict(driver.changelog)[f"demo/{name}".encode()] or b""
    file = DayFile(T0 // DAY_MS, 0, name.encode().ljust(8, b"."))
    data, (offset,) = encode_file([(b"demo/" + name.encode(), payload_in(record))])
    store.write(file, data)
    return record, without_payload(record, reference_to(file, offset, payload_in(record))), file


class Session:
    """What `whole` asks a session for."""

    def settings_of(self, kind: Any, _options: Any, **_how: Any) -> Any:
        return kind()


def test_an_export_has_payloads_that_lie_in_files(store: DayStore) -> None:
    here, lean, _ = away_record(store)
    other, other_lean, _ = away_record(store, "b")
    session: Any = Session()
    assert list(whole(session, [lean, other, here, other_lean])) == [here, other, here, other]
    with pytest.raises(UnreadableSchedule, match="lies in a day file"):
        portable(lean)
    assert portable(next(whole(session, [lean])))["payload_text"] == "a" + PAYLOAD.decode()


@pytest.mark.parametrize("how", ["gone", "changed", "no store"])
def test_an_export_leaves_nothing_out_in_silence(
    store: DayStore, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lean, file = away_record(store)
    if how == "gone":
        store.remove(file)
    elif how == "changed":
        store.write(file, store.read(file).replace(b"worth", b"WORTH"))
    else:
        monkeypatch.delenv("BELFRY_DAY_STORE")
    session: Any = Session()
    with pytest.raises(CommandError, match="BELFRY_DAY_STORE"):
        list(whole(session, [lean]))


def test_a_lookup_shows_no_reference_for_a_payload() -> None:
    driver = Driver()
    driver.ask(at=T0 + DAY_MS, payload=PAYLOAD)
    driver.step(T0)
    assert looked_up(driver)["payload_text"] == PAYLOAD.decode()
    record = dict(driver.changelog)[b"demo/a"] or b""
    stands = reference_to(DayFile(7, 0, b"12345678"), 30, PAYLOAD)
    driver.engine.put_aside(T0, [PutAside(b"demo/a", record, stands)])
    driver.end(T0)
    shown = looked_up(driver)
    assert "BELFRY_DAY_STORE" in shown["unreadable"]
    assert shown["payload_bytes"] == len(PAYLOAD)
    assert [name for name in shown if name.startswith("payload")] == ["payload_bytes"]


def test_what_waits_keeps_its_file(store: DayStore) -> None:
    """Of a row a sweep holds the reference alone, and the file's name follows from it."""
    _, lean, file = away_record(store)
    fold = Fold(Judge(), day_files._stands_of)
    fold._take(b"demo/a", lean)
    (stands,) = fold.waiting.values()
    assert day_files._file_of(stands) == file
