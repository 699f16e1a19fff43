"""The protocol's models, and SPIN, which tries every order of their steps.

A model is a `.pml` file beside this one.  SPIN makes a C program of it that visits each state once;
a state that breaks an assertion, or in which nothing can go on, is an error.  Each planted bug is
the same model with one line changed (`#ifdef BUG_…`), and its check has to fail: a model that lets
a bug pass proves nothing.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

HERE: Final = Path(__file__).parent
LIMIT_S: Final = 120
DEPTH: Final = 100_000


@dataclass(frozen=True, slots=True)
class Model:
    """One model in one variant; `floor` is less than the states that it has, with all its steps."""

    name: str
    floor: int
    bugs: tuple[str, ...]
    variant: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.name, *self.variant))


@dataclass(frozen=True, slots=True)
class Checked:
    """What SPIN found: states that it visited, and the first broken assertion, or nothing."""

    states: int
    violation: str
    seconds: float


MODELS: Final = (
    Model(
        "ownership",
        200_000,
        (
            "BUG_V1_REPEATS_END",
            "BUG_NO_FENCE",
            "BUG_END_BEFORE_FENCE",
            "BUG_STORE_BEFORE_COMMIT",
            "BUG_UNKNOWN_DONE_AGAIN",
        ),
    ),
    Model("ownership", 300_000, ("BUG_NO_FENCE", "BUG_END_BEFORE_FENCE"), ("V2",)),
    Model(
        "takeover",
        30_000,
        ("BUG_READS_BEFORE_FENCE", "BUG_EARLY_TAKES_OVER_AGAIN", "BUG_LOSER_KEEPS_SILENT"),
    ),
    Model(
        "standby",
        50_000,
        (
            "BUG_READS_UNCOMMITTED",
            "BUG_KEEPS_ABORTED",
            "BUG_LOSES_PLACE",
            "BUG_END_BEFORE_FENCE",
            "BUG_END_IS_LAST_STABLE",
        ),
    ),
    Model(
        "outcome",
        15_000,
        (
            "BUG_STORE_KEPT",
            "BUG_STORE_NOT_UNDONE",
            "BUG_NO_DEDUP",
            "BUG_GAP_NOT_NOTICED",
            "BUG_POSITION_FIRST",
            "BUG_POSITION_APART",
            "BUG_UNKNOWN_IS_ROLLED_BACK",
        ),
    ),
)


def check(model: Model, bug: str = "") -> Checked:
    """Visit every state of a model; raises RuntimeError where SPIN did not come to its end."""
    began = monotonic()
    defines = [f"-D{name}" for name in (*model.variant, bug) if name]
    with tempfile.TemporaryDirectory() as folder:
        _run(folder, "spin", "-a", *defines, str(HERE / f"{model.name}.pml"))
        # A planted bug is found within moments: there the compiler's time is what counts.
        _run(folder, "gcc", "-O0" if bug else "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c")
        said = _run(folder, "./pan", f"-m{DEPTH}")
    return _read(said, monotonic() - began)


def _run(folder: str, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def _read(said: str, seconds: float) -> Checked:
    states = re.search(r"^\s*(\d+) states, stored", said, re.MULTILINE)
    errors = re.search(r"errors: (\d+)", said)
    if states is None or errors is None or "max search depth too small" in said:
        raise RuntimeError(f"SPIN did not come to its end: {said}")
    broken = re.search(r"^pan:1: (.*)$", said, re.MULTILINE)
    violation = "" if errors[1] == "0" else (broken[1] if broken else said)
    return Checked(int(states[1]), violation, seconds)
