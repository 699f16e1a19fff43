"""Let Python keep what it has compiled, also where ``PYTHONDONTWRITEBYTECODE`` is set.

The suite starts some hundred workers and as many commands, and three workers of pytest read all of
its files.  Where nothing is kept each of them compiles what it imports anew: 0.8 s of a worker's
start, and half of the time in which the tests are collected.  The variable is left out for what
the tests start as well.

Loaded by `addopts` in `pyproject.toml`, in every worker of pytest-xdist as well.
"""

from __future__ import annotations

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
