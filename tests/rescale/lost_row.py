"""A bug for `make rescale`: a schedule that moves is dropped at its target, one and no other.

An audit that finds nothing proves as much as its ability to find something. So the same run is
played with this bug in the workers, and its audit has to name the schedule that was lost.

    a group arrives ─► first row of a single schedule ─► its name is written down ─► not kept
                       the same row again             ─►                            not kept
                       every other row                ─►                            kept

Workers share a file with the name, so one schedule is lost however often a worker is killed amid
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.harness.worker import Worker
from tests.simulation.planting import edited

FILE: Final = "LOST_ROW_FILE"
# So many ms before it is due: one that is due at once may be cancelled or updated in vain.
LEAST_MS: Final = 500

_KEEPS: Final = """            elif decoded is not None:
                self._keep(name, row, decoded, step)
"""
_LOSES: Final = f"""            elif _is_lost(name, decoded, step):
                pass
{_KEEPS}"""
_BEGIN: Final = "\n\nclass MovedRows:\n"
_IS_LOST: Final = f'''

def _is_lost(name: bytes, row: object, step: Step) -> bool:
    """Whether this row is the one that is lost."""
    import os

    file = os.environ["{FILE}"]
    single = isinstance(row, Pending) and b"/s/" in name
    if single and row.due_ms > step.now_ms + {LEAST_MS} and not os.path.exists(file):
        with open(file, "xb") as written:
            written.write(name)
    return os.path.exists(file) and open(file, "rb").read() == name
'''
_FILE: Final = "belfry/engine/moved_rows.py"
EDITS: Final = [
    {"file": _FILE, "old": _KEEPS, "new": _LOSES},
    {"file": _FILE, "old": _BEGIN, "new": _IS_LOST + _BEGIN},
]


class LostRow:
    """The bug, and which schedule it has lost."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._app = edited("lost_row", EDITS, folder)
        self._file = folder / "name"

    def put_into(self, workers: list[Worker]) -> None:
        """Have these workers run with the bug, from their next start on."""
        for worker in workers:
            worker.settings |= {"PYTHONPATH": str(self._app), FILE: str(self._file)}

    @property
    def name(self) -> str:
        """Tenant and schedule that were lost, as a finding names them; empty for none so far."""
        return self._file.read_text("utf-8") if self._file.exists() else ""
