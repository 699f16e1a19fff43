"""`belfry backup` and `belfry restore`: what needs no broker."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from belfry.cli.backup import TOGETHER, _write
from belfry.cli.entry import main
from belfry.cli.failures import WrongUse, tell
from belfry.client.errors import BelfryError


def test_a_file_that_is_no_backup_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text('{"tenant":"demo","schedule_id":"a"}\n')
    assert main(["restore", str(file)]) == 1
    assert "belfry schedule import" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl cannot be read" in capsys.readouterr().err


def test_an_empty_backup_asks_no_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text('{"belfry_backup":1}\n{"end":{"policies":0,"schedules":0}}\n')
    nobody = ("--bootstrap-servers", "127.0.0.1:1")
    assert main(["restore", str(file), *nobody]) == 0
    assert main(["restore", str(file), *nobody, "-o", "json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_no_backup_replaces_another(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_bytes(b"old")
    with pytest.raises(WrongUse, match="exists: give a new name"):
        _write(file, [b"new"])
    assert file.read_bytes() == b"old"


def test_a_full_disk_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no wrong use (exit code 2), and no fault of belfry's with a traceback."""

    def full() -> Iterator[bytes]:
        yield b"one\n"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as raised:
        _write(tmp_path / "new.jsonl", full())
    assert tell(raised.value) == 1
    assert capsys.readouterr().err == (
        "belfry: The output cannot be written: No space left on device. What is there of it is cut"
        " off.\n"
    )
    assert not (tmp_path / "new.jsonl").exists()
    with pytest.raises(WrongUse, match="No such file or directory"):
        _write(tmp_path / "nowhere" / "new.jsonl", [b"one\n"])


def test_a_backup_that_fails_has_no_name(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"

    def lines() -> Iterator[bytes]:
        yield b"one\n"
        raise BelfryError("the changelog is damaged")

    with pytest.raises(BelfryError):
        _write(file, lines())
    assert not file.exists()


def test_a_disk_that_holds_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new.jsonl"
    monkeypatch.setattr(os, "fsync", lambda descriptor: os.pwrite(descriptor, b"X", 3))
    with pytest.raises(WrongUse, match=r"new\.jsonl\.part does not hold what was written"):
        _write(file, [b"one\n", b"two\n"])
    assert not file.exists()


def test_lines_are_written_in_their_order_however_many(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    lines = [b"%d\n" % number for number in range(2 * TOGETHER + 1)]
    _write(file, lines)
    assert file.read_bytes() == b"".join(lines)
