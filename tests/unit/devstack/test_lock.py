"""One stack per data directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belfry.devstack import DevStackError
from belfry.devstack.stack import locked


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(DevStackError) as refused, locked(tmp_path):
        pass
    said = str(refused.value)
    assert str(tmp_path) in said
    assert f"process {os.getpid()}" in said
    assert "--data-dir" in said


def test_the_directory_is_made_and_free_again_afterwards(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    with locked(directory):
        pass
    with locked(directory):
        assert (directory / "lock").read_text() == str(os.getpid())
