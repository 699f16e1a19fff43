"""Secrets by reference: read from two places alone, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belfry.policies.secrets import MOST_BYTES, BadSecret, SecretPlaces

LONG = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    made.mkdir()
    return made


def test_a_file_may_hold_several(folder: Path) -> None:
    (folder / "mail").write_text(f"{LONG}\n\n  {LONG}x \n")
    wanted = (LONG.encode(), f"{LONG}x".encode())
    places = SecretPlaces(folder)
    assert places.read(f"file:{folder / 'mail'}") == wanted
    assert places.read("file:mail") == wanted


def test_a_variable_that_is_there_to_be_named_holds_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELFRY_SECRET_MAIL", LONG)
    assert SecretPlaces(folder).read("env:BELFRY_SECRET_MAIL") == (LONG.encode(),)


@pytest.mark.parametrize("name", ["HOME", "BELFRY_HTTP_WORKER_SECRET", "BELFRY_SECRET_", ""])
def test_other_variables_are_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name:
        monkeypatch.setenv(name, LONG)
    with pytest.raises(BadSecret, match="begins with BELFRY_SECRET_"):
        SecretPlaces(folder).read(f"env:{name}")


@pytest.mark.parametrize("text", ["", "\n", "short", f"{LONG}\nshort"])
def test_nothing_and_short_ones_are_refused_without_being_shown(folder: Path, text: str) -> None:
    (folder / "mail").write_text(text)
    with pytest.raises(BadSecret, match=r"empty|16 are needed") as refused:
        SecretPlaces(folder).read("file:mail")
    assert "short" not in str(refused.value)


def test_a_place_without_any_is_refused(folder: Path) -> None:
    with pytest.raises(BadSecret, match="No such file"):
        SecretPlaces(folder).read("file:none")
    with pytest.raises(BadSecret, match="No such file"):
        SecretPlaces(folder / "none").read("file:mail")


@pytest.mark.parametrize(
    "place",
    ["/dev/zero", "/etc/passwd", "../beside", "sub/../../beside", "", ".", "a\0b", "../secrets2/x"],
)
def test_files_outside_of_the_folder_are_not_touched(
    folder: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "beside").write_text(LONG)
    (folder.parent / "secrets2").mkdir()
    (folder.parent / "secrets2" / "x").write_text(LONG)
    monkeypatch.setattr(os, "open", None)
    with pytest.raises(BadSecret, match="BELFRY_SECRETS_DIR"):
        SecretPlaces(folder).read(f"file:{place}")


def test_a_link_may_lead_within_the_folder_and_not_out_of_it(folder: Path) -> None:
    """Mounted secrets of Kubernetes are links within their folder."""
    (folder / "..data").mkdir()
    (folder / "..data" / "mail").write_text(LONG)
    (folder / "mail").symlink_to(Path("..data") / "mail")
    (folder.parent / "beside").write_text(LONG)
    (folder / "out").symlink_to(folder.parent / "beside")
    (folder / "zero").symlink_to("/dev/zero")
    places = SecretPlaces(folder)
    assert places.read("file:mail") == (LONG.encode(),)
    for name in ("out", "zero"):
        with pytest.raises(BadSecret, match="leads out"):
            places.read(f"file:{name}")


@pytest.mark.timeout(5)
def test_a_pipe_and_a_folder_are_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "deep").mkdir()
    for name in ("pipe", "deep"):
        with pytest.raises(BadSecret, match="not a regular file"):
            SecretPlaces(folder).read(f"file:{name}")


def test_a_file_is_read_to_its_bound_and_no_further(folder: Path) -> None:
    path = folder / "mail"
    path.write_text("x" * MOST_BYTES)
    assert SecretPlaces(folder).read("file:mail") == (b"x" * MOST_BYTES,)
    with path.open("a") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadSecret, match="4096 bytes"):
        SecretPlaces(folder).read("file:mail")


def test_what_is_no_reference_is_refused_without_being_shown(folder: Path) -> None:
    with pytest.raises(BadSecret, match="names no place") as refused:
        SecretPlaces(folder).read("hunter2hunter2")
    assert "hunter2" not in str(refused.value)
