"""A worker's data directory: for one process alone, and for its own user alone."""

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
    """The worker must not run as it is configured; the message says what to do."""


@contextmanager
def only_one_in(folder: Path) -> Iterator[None]:
    """Hold a data directory for this process alone; nobody else may read it either."""
    make_private()
    for problem in close_to_others(folder):
        log.warning("state can be read by others", problem=problem)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise RefusedToStart(
                f"data directory {folder} is in use by process {lock.read().strip() or '?'}: give"
                " each worker its own (BELFRY_DATA_DIR)."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
