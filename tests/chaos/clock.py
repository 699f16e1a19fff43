"""A worker's wall clock in the hands of a test."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from tests.acceptance.harness.worker import Worker

CLOCKWORK: Final = Path(__file__).parent / "clockwork"


class MovedClock:
    """Moves the wall clock of one worker, which has to be started after this is made."""

    def __init__(self, worker: Worker) -> None:
        self._file = worker.data_dir.with_name("clock-offset")
        self._file.write_bytes(bytes(8))
        path = os.environ.get("PYTHONPATH", "")
        worker.settings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CLOCKWORK), path]))
        worker.settings["CLOCK_OFFSET_FILE"] = str(self._file)

    def put(self, ahead_ms: int) -> None:
        """Set the clock so far ahead of the true one (negative: behind), at once."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("<q", ahead_ms * 1_000_000))
