"""Starts the simulator as its users do: a process of its own, against a tree of shipped files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def start(*options: str, app: Path = ROOT / "app") -> subprocess.Popen[str]:
    """A simulator that imports belfry from `app`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulation", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{app}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(simulator: subprocess.Popen[str], timeout_s: float) -> str:
    """What a simulator printed; killed where it takes too long."""
    with simulator:
        try:
            return simulator.communicate(timeout=timeout_s)[0]
        finally:
            simulator.kill()
