"""Fuzzing of one door: ``python -m tests.fuzz.door NAME [options of libFuzzer] [corpora]``.

``make fuzz DOOR=bodies`` runs it for a minute; `doors.py` lists the doors and what has to hold.
"""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["belfry", "tests"]):
    from tests.fuzz.doors import Timed

if __name__ == "__main__":
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, Timed(name))
    atheris.Fuzz()
