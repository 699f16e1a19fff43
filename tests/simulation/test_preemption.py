"""Pre-emption between lines loses an update that no lock guards, and none that one does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.simulation import preemption
from tests.simulation.primitives import SimSemaphore
from tests.simulation.stage import Host, Stage, enter, leave

SHARED = """
class Counted:
    def __init__(self, lock):
        self.number, self.lock = 0, lock

    def bare(self):
        for _ in range(50):
            number = self.number
            self.number = number + 1

    def guarded(self):
        for _ in range(50):
            with self.lock:
                number = self.number
                self.number = number + 1
"""


def counted(name: str, file: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> int:
    """What two tasks count to that share one counter."""
    file.write_text(SHARED)
    made: dict[str, type] = {}
    exec(compile(SHARED, str(file), "exec"), made)  # a file of its own to be traced
    monkeypatch.setattr(preemption, "files_of", lambda _rooms: frozenset({str(file)}))
    monkeypatch.setattr(preemption, "CHANCES", (0.1,))
    stage = Stage(Random(seed), traced=True)
    stage.begins = preemption.Preemption(stage, Random(seed)).trace
    enter(stage)
    try:
        shared = made["Counted"](SimSemaphore())
        for number in range(2):
            stage.spawn(f"task {number}", getattr(shared, name), Host("one"))
        stage.sleep(1_000)
    finally:
        leave()
    assert not stage.failures
    return int(shared.number)


@pytest.mark.parametrize("seed", range(5))
def test_an_update_without_a_lock_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert counted("bare", tmp_path / "shared.py", monkeypatch, seed) < 100


@pytest.mark.parametrize("seed", range(5))
def test_an_update_under_a_lock_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert counted("guarded", tmp_path / "shared.py", monkeypatch, seed) == 100
