"""Whom a worker believes in the changelog, and what it signs with: settings, secrets and marks.

    trusted    signs nothing; believes what is signed with a secret of its own, and what is not
               signed at all
    signed     signs; believes the same
    required   signs; takes what is not signed for a stranger's

A running belfry goes over from one to the next, worker by worker.  Before the last step all rows
have to be signed: an owner that signs writes the older ones once more (`resigning.py`), also when
the secret is changed.

A worker that would take rows for a stranger's because it lacks their secret, or because they are
not signed yet, or would write rows that others take for a stranger's, does not take the partition
(`check`).
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
    """What the settings of one worker make of changelogs; any thread may ask."""

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
        """What is said of a partition; raises NotTrusted where its rows cannot be judged here."""
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
        """The same for who is going to write there; NotTrusted where that would be skipped."""
        mark = self.known(partition)
        if mark.required and not self.signs:
            raise NotTrusted(
                f"partition {partition} had an owner with BELFRY_CHANGELOG=required, which skips"
                " what this worker would write: set BELFRY_CHANGELOG=signed, or required."
            )
        return mark

    def judge(self, partition: int, topic_id: str, mark: Mark) -> Judge:
        """What tells a worker's records, by what is said of the partition."""
        believed = [RowKeys(key, topic_id, partition) for key in self._keys]
        return Judge(believed, required=self.required, near_from=mark.near_from)

    @property
    def index_keys(self) -> IndexKeys:
        """What signs and judges indexes of checkpoints: the same keys, by the same rule."""
        return IndexKeys(self._keys, self.signs, self.required)

    def sieve(self, partition: int, topic_id: str, mark: Mark) -> Sieve:
        """What lets a worker's records through."""
        return Sieve(self.judge(partition, topic_id, mark), self._counted)

    def signer(
        self, partition: int, topic_id: str, least: int, log_end: Callable[[], int]
    ) -> RowSigner | None:
        """What signs rows, the first of which lies at offset `least`; None where none does.

        `log_end` tells where the log ends, or raises ConnectionError.
        """
        if not self.signs:
            return None
        return RowSigner(RowKeys(self._keys[0], topic_id, partition), least, log_end)

    def begins(self, partition: int, before: Mark, least: int) -> bool:
        """Say what an owner signs with, before it does; whether older rows are to be signed.

        Nothing of this owner lies before offset `least`.
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
        """Say that every row of a partition is signed with the first secret; False if in vain."""
        try:
            said = self.marks.read(partition)
            required = self.required or said.required
            self.marks.owned(partition, Mark((self._names[0],), True, required, said.near_from))
        except ConnectionError as error:
            log.warning("that all rows are signed is not said yet", reason=str(error))
            return False
        log.info("all rows of the changelog are signed", partition=partition)
        return True
