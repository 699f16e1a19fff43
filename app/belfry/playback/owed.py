"""Rows that the log owes: a step wrote them when it was played, and compaction has removed them.

Compaction keeps the last row of each key, so a later one has to come. Of a tombstone nothing has to
be left.
"""

from __future__ import annotations

from collections.abc import Mapping

from belfry.playback.comparing import StepDifference, is_manifest, row_in_words
from belfry.playback.logged import LoggedStep


class OwedRows:
    """Rows that are missing in the log so far, by key."""

    def __init__(self) -> None:
        self._rows: dict[bytes, StepDifference] = {}

    def copy(self) -> OwedRows:
        """The same, to go on from."""
        other = OwedRows()
        other._rows = self._rows.copy()
        return other

    @property
    def first(self) -> StepDifference | None:
        """One that is still missing, None for none."""
        return next(iter(self._rows.values()), None)

    def note(self, step: LoggedStep, rows: Mapping[bytes, bytes | None]) -> int:
        """Note what a step has written and its log lacks; how many rows that are."""
        for key in step.rows:
            self._rows.pop(key, None)
        if step.whole:
            return 0
        missing = [key for key in rows if key not in step.rows and not is_manifest(key)]
        for key in missing:
            if rows[key] is not None:
                name, played = key.decode(errors="backslashreplace"), row_in_words(rows[key], b"")
                self._rows[key] = StepDifference(
                    "row", step.manifest.txn_seq, step.last, name, "no row, here or later", played
                )
        return len(missing)
