"""Fuzzing of one door: ``python -m tests.fuzz.door NAME [options of libFuzzer] [corpora]``.

``make fuzz DOOR=bodies`` runs it for a minute, ``make fuzz-all INPUTS=10000000`` all doors, each to
so many inputs (`INPUTS` in the environment).  `doors.py` lists the doors and what has to hold.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import partial

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["belfry"]):
    from tests.fuzz.doors import DOORS, records
    from tests.fuzz.limits import Limited

if __name__ == "__main__":
    name = sys.argv.pop(1)
    last = int(os.environ.get("INPUTS", "0")) or None
    limited = Limited(DOORS[name], last, partial(records, name))
    # What is there by now stays; collections need not look at it.
    gc.collect()
    gc.freeze()
    atheris.Setup(sys.argv, limited)
    atheris.Fuzz()
