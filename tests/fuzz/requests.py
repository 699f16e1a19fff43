"""Fuzzing of requests: whatever the bytes are, the engine gives exactly one verdict and goes on.

``make fuzz`` runs it for a minute from the corpus beside it, ``make fuzz SECONDS_OF_FUZZ=3600`` for
an hour.  The corpus alone is run with the unit tests.
"""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports():
    from tests.fuzz.inputs import one_input

if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
