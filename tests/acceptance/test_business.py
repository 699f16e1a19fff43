"""What runs at the lowest priority is not taken for a busy machine, as everything else is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.harness.business import LOWEST_PRIORITY, _ticks


@contextmanager
def spinning(niceness: int) -> Iterator[str]:
    """The id of a process that has nothing to wait for."""
    code = f"import os; os.nice({niceness}); print(flush=True)\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield str(child.pid)
    finally:
        child.kill()
        child.communicate()


def test_a_process_counts_unless_it_runs_at_the_lowest_priority() -> None:
    with spinning(0) as one, spinning(LOWEST_PRIORITY) as other:
        assert Path(f"/proc/{other}").exists()
        found = _ticks()
        assert one in found
        assert other not in found
