"""The changelog's records that a worker wrote, told from those of strangers.

Records in the changelog are state. A record that a stranger has written there is skipped, counted
and logged: it neither becomes state nor stops the partition. A record that may be a row is never
skipped for a guess (`store/row_judge.py`, `Judge`). Fillers are skipped silently.

    offset    40     41          42           43         44
    record    row    not a row   row, signed  filler     row with a copied signature
    signed    state  skipped     state        silent     skipped: it was signed for another offset

One reader uses it, in one thread, in the order of offsets, since a record counts or not by the
offset of the last manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from belfry.kafka.fetch_position import Where
from belfry.store.net import Change
from belfry.store.row_judge import Judge, LoggedRecord
from belfry.store.signatures import NOWHERE
from belfry.telemetry.limited import LimitedLogger

log = structlog.get_logger(__name__)
_told: Final = LimitedLogger(log)

Changes = tuple[list[Change], list[int]]
Counted = Callable[[str, int], None]


def uncounted(_topic: str, _records: int) -> None:
    """The default of `counted`: counts nothing."""


class Sieve:
    """Lets a worker's records of one partition through; batches come in the order of offsets."""

    def __init__(self, judge: Judge | None = None, counted: Counted = uncounted) -> None:
        self._judge = judge or Judge()
        self._counted = counted

    def restart(self, manifest_at: int = -1) -> None:
        """Expect records from another offset on; `manifest_at` is the last before, -1: unknown."""
        self._judge.restart(manifest_at)

    def go_on_from(self, other: Sieve) -> None:
        """Expect records from the position of another sieve of the same partition."""
        self._judge.go_on_from(other._judge)

    def believe_near(self, told: Callable[[], int]) -> None:
        """Ask from which offset on all owners write fillers, if one did not at the begin."""
        if self._judge.near_from == NOWHERE:
            self._judge.believe_near(told())

    @property
    def manifest_at(self) -> int:
        """Offset of the last manifest that was met; -1 for none."""
        return self._judge.manifest_at

    def may_be_copies(self, offsets: Sequence[int]) -> bool:
        """Whether rows behind the last manifest may be copies of rows that were rolled back."""
        return self._judge.may_be_copies(offsets)

    def ours(self, records: Sequence[LoggedRecord], where: Where) -> Changes:
        """The rows among records of a partition, and their offsets; others are reported."""
        changes, offsets, strangers = self._judge.rows(records)
        if strangers:
            self._report(strangers, *where)
        return changes, offsets

    def _report(self, skipped: Sequence[LoggedRecord], topic: str, partition: int) -> None:
        """Count skipped records, and log the place of the first one."""
        self._counted(topic, len(skipped))
        _told.warning(
            f"{topic}/{partition}",
            "records that no worker wrote are skipped",
            topic=topic,
            partition=partition,
            offset=skipped[0].offset,
            records=len(skipped),
            to_do="find out who else may write to this topic, and take the right away",
        )
