"""A watch for changes of files that others renew while a process runs, such as certificates.

    changed? ─┬ less than 5 s after the last look ─► no, and nothing is asked
              └ else: time, size and number of each file ─┬ as at the last look ─► no
                                                          └ other, or gone      ─► yes, once

Links are followed: Kubernetes renews the files of a secret by changing a link.  A file that cannot
be used is reported once, and looked at again when it changes, so a certificate that is written
before its key does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

LOOK_S: Final = 5.0

_Stamp = tuple[int, int, int] | None


class FileWatch:
    """Tells whether any of these files or folders has changed since the last look.

    The first look is made here, so read the files afterwards.  `clock` gives seconds and never goes
    back.  Several threads may ask it: two of them may be told of the same change.
    """

    def __init__(self, paths: Sequence[Path], clock: Callable[[], float]) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._looked_s = clock()
        self._stamps = self._look()

    def changed(self) -> bool:
        """Whether to read them again; quick, and at most one look within `LOOK_S`."""
        now_s = self._clock()
        if not self._paths or now_s - self._looked_s < LOOK_S:
            return False
        self._looked_s = now_s
        before, self._stamps = self._stamps, self._look()
        return self._stamps != before

    def _look(self) -> list[_Stamp]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: Path) -> _Stamp:
    """Figures that change with the content of a file, or None where there is no file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
