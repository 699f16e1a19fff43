"""A disk that fails or lies takes rows from no store without a word.

A library between the process and the kernel makes reads, writes and syncs fail, changes bits, and
keeps half of what was written.  Whatever it does, a store is the fold of a prefix of its log, or
says that it is damaged: nothing is missing amid it, and nothing is another's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

SEEDS: Final = 4
STEPS: Final = 60
TIMEOUT_S: Final = 120
# So much of each log is shown where a process fails.
TOLD: Final = 6_000
# By its mode: what has to be met within these seeds.
MET: Final = ("s failed", "w failed", "m failed", "r failed", "f damaged", "h damaged", "opened")
COMPILER: Final = shutil.which("cc")

pytestmark = pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="needs cc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled."""
    found = tmp_path_factory.mktemp("odd") / "odd_disk.so"
    source = Path(__file__).with_name("odd_disk.c")
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(found), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return found


def played(library: Path, folder: Path, seed: int) -> Counter[str]:
    """What a process met on such a disk; where it fails, all that it said of each step is told."""
    mode, said, result = folder / "mode", folder / "said", folder / "result"
    program = [sys.executable, "-X", "faulthandler", "-m", "tests.unit.host.odd_disk"]
    odd = {"LD_PRELOAD": str(library), "ODD_DISK": str(folder / "store")}
    # Into files, so that a process that is killed for its time has not said it in vain.
    with said.open("wb") as errors, result.open("wb") as output:
        try:
            code = subprocess.run(
                [*program, str(folder / "store"), str(mode), str(seed), str(STEPS)],
                env={**os.environ, **odd, "ODD_DISK_MODE": str(mode)},
                stdout=output,
                stderr=errors,
                timeout=TIMEOUT_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            pytest.fail(f"seed {seed} has not ended in {TIMEOUT_S} s\n{told(folder)}")
    assert code == 0, f"seed {seed} ended with {code}\n{told(folder)}"
    return Counter(json.loads(result.read_text("utf-8").splitlines()[-1]))


def told(folder: Path) -> str:
    """The end of what the process said and printed, and of RocksDB's own log."""
    logs = [folder / "said", folder / "result", folder / "store" / "LOG"]
    texts = [each.read_text("utf-8", errors="replace") for each in logs if each.is_file()]
    return "\n---\n".join(text[-TOLD:] for text in texts)


@pytest.mark.timeout(SEEDS * TIMEOUT_S)
def test_a_store_is_a_prefix_of_its_log_or_says_that_it_is_damaged(
    library: Path, tmp_path: Path
) -> None:
    met: Counter[str] = Counter()
    for seed in range(SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        met += played(library, folder, seed)
    lacking = {*MET} - met.keys()
    assert not lacking, f"not met: {lacking}; met: {met}"
