"""One stack per data directory: a lock that the kernel takes back however its holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from belfry.devstack.errors import DevStackError
from belfry.host.private_files import close_to_others


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold ``directory`` (made if missing); another holder is an error that names it."""
    # The broker in it keeps payloads.  A folder that cannot be closed serves all the same: this
    # is a stack for development, on the user's own machine.
    close_to_others(directory)
    with (directory / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise DevStackError(_in_use(directory, file.read().strip())) from None
        _write_holder(file.fileno())
        yield


def _write_holder(fd: int) -> None:
    os.ftruncate(fd, 0)
    os.write(fd, str(os.getpid()).encode())


def _in_use(directory: Path, holder: str) -> str:
    return (
        f"The data directory {directory} is in use by another belfry stack "
        f"(process {holder or 'unknown'}). Stop that one, or give this one its own: --data-dir DIR."
    )
