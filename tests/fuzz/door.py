"""Fuzzing of one door: ``python -m tests.fuzz.door NAME [options of libFuzzer] [corpora]``.

``make fuzz DOOR=bodies`` runs it for a minute, ``make fuzz-all INPUTS=10000000`` all doors, each to
so many inputs (`INPUTS` in the environment).  `doors.py` lists the doors and what has to hold.
"""

from __future__ import annotations

import gc
import os
import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["belfry"]):
    from tests.fuzz.doors import DOORS
    from tests.fuzz.limits import Limited

if __name__ == "__main__":
    name = sys.argv.pop(1)
    limited = Limited(DOORS[name], int(os.environ.get("INPUTS", "0")) or None)
    # What is there by now stays; collections need not look at it.
    gc.collect()
    gc.freeze()
    atheris.Setup(sys.argv, limited)
    atheris.Fuzz()
