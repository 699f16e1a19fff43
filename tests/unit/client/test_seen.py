"""Fire ids survive the process, and are forgotten when they are old."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from belfry.client import SeenFile, SeenInMemory
from belfry.client import seen as seen_module
from tests.architecture.tree import ROOT

KILLED = """
import os, signal, sys
from belfry.client import SeenFile
seen = SeenFile(sys.argv[1])
seen.add("a")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_added_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "seen.db"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)],
        env={"PYTHONPATH": str(ROOT / "app")},
        check=False,
        timeout=60,
    )
    assert done.returncode == -9
    seen = SeenFile(path)
    assert seen.knows("a")
    assert not seen.knows("b")
    seen.add("a")
    seen.close()


def test_old_ids_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(seen_module, "time", lambda: now[0])
    seen = SeenFile(tmp_path / "seen.db", keep_s=60)
    seen.add("old")
    now[0] += 61
    for number in range(seen_module.FORGET_EVERY):
        seen.add(str(number))
    assert not seen.knows("old")
    assert seen.knows("0")
    seen.close()


def test_memory_forgets_with_the_process() -> None:
    seen = SeenInMemory()
    seen.add("a")
    assert seen.knows("a")
    assert not seen.knows("b")
