"""Secrets by reference: found where they lie, refused where they are no secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from belfry.worker.secrets import secrets_at

LONG = "0123456789abcdef"


def test_a_file_may_hold_several(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(f"{LONG}\n\n  {LONG}x \n")
    assert secrets_at(f"file:{path}") == (LONG.encode(), f"{LONG}x".encode())


def test_the_environment_holds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_A_TEST", LONG)
    assert secrets_at("env:SECRET_OF_A_TEST") == (LONG.encode(),)


@pytest.mark.parametrize("text", ["", "\n", "short", f"{LONG}\nshort"])
def test_nothing_and_short_ones_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text(text)
    with pytest.raises(ValueError, match=r"secret"):
        secrets_at(f"file:{tmp_path / 'secret'}")


def test_a_place_without_any_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        secrets_at(f"file:{tmp_path / 'none'}")
