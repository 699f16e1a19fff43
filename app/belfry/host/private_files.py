"""Files that no other user of the machine may read, because payloads lie in them.

A process that keeps state takes the rights of others away from all files that it makes from then
on, and from files that earlier releases left behind.  A folder that is not belfry's alone is left
as it is, because others may need it; then its user gets a warning.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
OWN_FOLDER: Final = 0o700
OWN_FILE: Final = 0o600
# A file in every folder that belfry has used.
LOCK: Final = "lock"


def make_private() -> None:
    """Make all later files of this process and its children readable for its user alone."""
    os.umask(OTHERS)


def close_to_others(folder: Path) -> list[str]:
    """Make a folder that its user alone may enter, or close an existing one.

    Returns a sentence for each folder in it that stays open, because it is not this user's, or not
    belfry's alone.
    """
    folder.mkdir(mode=OWN_FOLDER, parents=True, exist_ok=True)
    ours = _is_ours(folder)
    inner = (each for each in folder.iterdir() if ours and each.is_dir() and not each.is_symlink())
    told = (_closed(each, ours=ours) for each in (folder, *inner))
    return [why for why in told if why is not None]


def _is_ours(folder: Path) -> bool:
    """Whether a folder is belfry's or empty; `/var/lock` is a link, and not belfry's file."""
    lock = folder / LOCK
    return (lock.is_file() and not lock.is_symlink()) or not any(folder.iterdir())


def _closed(folder: Path, *, ours: bool) -> str | None:
    """Take the rights of others away; a sentence where belfry must not or cannot do that."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & OTHERS:
        return None
    try:
        if ours and not mode & stat.S_ISVTX:
            folder.chmod(mode & ~OTHERS)
            return None
    except PermissionError:
        pass
    return (
        f"{folder} has mode {mode:04o}, so others may look into it, and it is not closed, because"
        " it is shared or another user's: give belfry a folder of its own, of mode 0700."
    )
