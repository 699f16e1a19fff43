"""What the suite starts begins its work soon: hundreds of Python processes, dozens of Java ones.

Python keeps what it has compiled, also where ``PYTHONDONTWRITEBYTECODE`` is set.  Otherwise each
worker compiles all of belfry anew (2.2 s of CPU until it runs instead of 1.4), and each worker of
pytest all tests.

Each worker of pytest makes a million objects while it collects, which last until its end. Python
looks for garbage seldom, and never among those.

Java stops at its first compiler.  A broker is up after 3 s of CPU instead of 6, and has used less
for its first thousand transactions, which is longer than most of them live.  The session's own
broker lives longer and takes both (`conftest.py`).

Loaded by `addopts` in `pyproject.toml`, in every worker of pytest-xdist as well.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

# Read by every `java` that is started, Maven's as well; one that is set already stays.
QUICK: Final = ("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# As commands of belfry do (`belfry.cli.entry`).
NEW_OBJECTS: Final = 50_000

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.setdefault(*QUICK)
gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


def pytest_collection_finish() -> None:
    """Leave what was collected out of all later looks for garbage."""
    gc.freeze()
