"""The free bytes under a worker's data directory: one thread looks, any other reads.

A look may fail, and it may block for long if the file system is gone.  So probes and scrapes get
the result of the last look, and never look themselves.
"""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage
from typing import Final

from belfry.host.errors import named

MIB: Final = 1024 * 1024


class DataDisk:
    """The disk of one folder; `free_bytes` is 0 while `problem` says why it cannot be looked at."""

    def __init__(self, folder: Path) -> None:
        """Look for the first time."""
        self.folder = folder
        self.free_bytes = 0
        self.problem = ""
        self.look()

    def look(self) -> None:
        """Look again; never raises."""
        try:
            self.free_bytes, self.problem = disk_usage(self.folder).free, ""
        except OSError as error:
            self.free_bytes = 0
            self.problem = f"the disk of {self.folder} cannot be looked at: {named(error)}"
