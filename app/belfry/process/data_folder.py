"""A worker's data directory: for one process alone, and for its own user alone.

Two workers in one directory would open the same stores. RocksDB refuses the second one store by
store; the lock here refuses it as a whole, before anything is opened, and names the process that
has it. The lock is the kernel's (``flock``), so it is gone with its process however that ends, and
a file that is left behind locks no process out.

The state holds payloads and headers of targets, so files are made for this user alone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from belfry.host.private_files import close_to_others, make_private

log = structlog.get_logger("belfry")


class RefusedToStart(Exception):
    """The worker must not run as it is configured; the message says what to do.

    The error ends the process with exit code 1, and nothing has been changed by then.
    """


@contextmanager
def only_one_in(folder: Path) -> Iterator[None]:
    """Hold a data directory for this process alone; other users may not read it either.

    Raises `RefusedToStart` if another process has it. If other users can read files already, that
    is logged, and the files stay as they are.
    """
    make_private()
    for problem in close_to_others(folder):
        log.warning("state can be read by others", problem=problem)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # The other process wrote its id here.
            lock.seek(0)
            raise RefusedToStart(
                f"data directory {folder} is in use by process {lock.read().strip() or '?'}: give"
                " each worker its own (BELFRY_DATA_DIR)."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
