"""The rows that a worker believes in the changelog, and its key: settings, secrets and marks.

    trusted    signs nothing; believes rows signed with a secret of its own, and rows that are not
               signed at all
    signed     signs; believes the same
    required   signs; takes rows that are not signed for a stranger's

A running belfry goes from one of these to the next, worker by worker. Before the last step all rows
have to be signed: an owner that signs writes the older rows once more (`resigning.py`), also when
the secret is changed.

A worker does not take a partition (`check`) if it would take workers' rows for a stranger's,
because it lacks their secret or they are not signed yet, or if other workers would take its rows
for a stranger's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog

from belfry.kafka.changelog_sieve import Counted, Sieve, uncounted
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.signature_marks import Mark, Marks
from belfry.settings import SharedSettings
from belfry.store.checkpoint import IndexKeys
from belfry.store.row_judge import Judge
from belfry.store.signatures import RowKeys, fingerprint
from belfry.wire.worker_keys import Purpose

_NAMES: Final = "BELFRY_HTTP_WORKER_SECRET or BELFRY_HTTP_WORKER_SECRET_ALSO"

log = structlog.get_logger(__name__)


class NotTrusted(Exception):
    """This worker must not own the partition: it and the others would not believe one another.

    The message says which secret or setting is missing. The partition is left to another worker.
    """


class ChangelogTrust:
    """The trust in changelogs by one worker's settings; any thread may ask."""

    def __init__(
        self, settings: SharedSettings, marks: Marks, counted: Counted = uncounted
    ) -> None:
        self._keys = settings.worker_keys(Purpose.CHANGELOG)
        self._names = tuple(map(fingerprint, self._keys))
        self._counted = counted
        self.signs = settings.changelog != "trusted"
        self.required = settings.changelog == "required"
        self.marks = marks

    def known(self, partition: int) -> Mark:
        """The mark of a partition; raises NotTrusted if its rows cannot be judged here."""
        mark = self.marks.read(partition)
        if not set(mark.keys) <= set(self._names):
            raise NotTrusted(
                f"rows of partition {partition} are signed with a secret that this worker does not"
                f" have: give it that one as {_NAMES}, until all rows are signed anew."
            )
        if self.required and mark.keys and not (mark.whole or mark.required):
            raise NotTrusted(
                f"rows of partition {partition} are not all signed yet, and this worker would skip"
                " the others: set BELFRY_CHANGELOG=signed until its owner has said in its log that"
                " all rows of the changelog are signed."
            )
        return mark

    def check(self, partition: int) -> Mark:
        """The same for an owner that will write there; NotTrusted if its rows would be skipped."""
        mark = self.known(partition)
        if mark.required and not self.signs:
            raise NotTrusted(
                f"partition {partition} had an owner with BELFRY_CHANGELOG=required, which skips"
                " what this worker would write: set BELFRY_CHANGELOG=signed, or required."
            )
        return mark

    def judge(self, partition: int, topic_id: str, mark: Mark) -> Judge:
        """The judge of workers' records, by the mark of the partition."""
        believed = [RowKeys(key, topic_id, partition) for key in self._keys]
        return Judge(believed, required=self.required, near_from=mark.near_from)

    @property
    def index_keys(self) -> IndexKeys:
        """The keys that sign and judge indexes of checkpoints: the same keys, by the same rule."""
        return IndexKeys(self._keys, self.signs, self.required)

    def sieve(self, partition: int, topic_id: str, mark: Mark) -> Sieve:
        """The sieve that lets workers' records through."""
        return Sieve(self.judge(partition, topic_id, mark), self._counted)

    def signer(
        self, partition: int, topic_id: str, least: int, log_end: Callable[[], int]
    ) -> RowSigner | None:
        """The signer of rows, the first of which lies at offset `least`; None without signing.

        `log_end` gives the end of the log, or raises ConnectionError.
        """
        if not self.signs:
            return None
        return RowSigner(RowKeys(self._keys[0], topic_id, partition), least, log_end)

    def begins(self, partition: int, before: Mark, least: int) -> bool:
        """Mark an owner's key, before it signs; returns whether older rows are to be signed.

        No row of this owner lies before offset `least`.
        """
        if not self.signs:
            if before.whole:
                self.marks.owned(partition, replace(before, whole=False))
            return False
        near_from = min(before.near_from, least)
        mine = self._names[0]
        keys = (mine, *(each for each in before.keys if each != mine))
        whole = before.whole and keys == (mine,)
        required = before.required or self.required
        self.marks.owned(partition, Mark(keys, whole, required, near_from))
        return not whole

    def all_signed(self, partition: int) -> bool:
        """Mark every row of a partition as signed with the first secret; False if that failed."""
        try:
            said = self.marks.read(partition)
            required = self.required or said.required
            self.marks.owned(partition, Mark((self._names[0],), True, required, said.near_from))
        except ConnectionError as error:
            log.warning("the mark that all rows are signed is not written yet", reason=str(error))
            return False
        log.info("all rows of the changelog are signed", partition=partition)
        return True
