"""The rows that a recovery writes, by its plan: rows of the changelog, and tombstones in it.

    base of the plan     rows that are written                  tombstones, for the rest of the log
    the log as it is     none: only the position is another     none
    the log, rewritten   all that it holds                      none
    a copy               all that the copy holds                what only the changelog holds
    nothing              the settings                           all that the changelog holds

A changelog is compacted, so a row that is not written over or deleted stays: a row that is missing
in a copy would come back to life with the next take-over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from belfry.recovery.copies import ReadOnlyRows
from belfry.recovery.partition_evidence import PartitionEvidence
from belfry.recovery.recovery_plan import NOTHING, RecoveryPlan
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.overlaid import Overlaid
from belfry.store.recovery import changelog_rows, manifest_after, of_earlier_input

Change = tuple[bytes, bytes | None]


def changed_rows(found: PartitionEvidence, plan: RecoveryPlan, settings: bytes) -> Iterator[Change]:
    """The rows that change: none where only the position does.

    `settings` are those of the cluster, for a partition that begins with nothing.
    """
    if not plan.rewrites:
        return
    if plan.base == NOTHING:
        yield keys.SETTINGS_KEY, settings
        yield from _ended(found, Overlaid(_Nothing()))
        return
    if plan.copy is None:
        yield from _kept(found.store, plan)
        return
    with closing(ReadOnlyRows(plan.copy.path)) as rows:
        store = Overlaid(rows)
        yield from _kept(store, plan)
        yield from _ended(found, store)


def manifest_of(found: PartitionEvidence, plan: RecoveryPlan, pending: int) -> Manifest:
    """The manifest of the recovery: the number behind all known ones, position, pending rows.

    `pending` schedules are among the rows that were written.
    """
    if plan.rewrites:
        return manifest_after(plan.before, found.logged, plan.position, pending)
    assert found.logged is not None
    following = manifest_after(plan.before, None, plan.position, found.logged.pending)
    return following._replace(txn_seq=found.logged.txn_seq + 1)


def _kept(store: Overlaid, plan: RecoveryPlan) -> Iterator[Change]:
    """Rows of the recovered state; places in a former input are taken out of them."""
    for key, row in changelog_rows(store):
        yield key, of_earlier_input(row) if plan.earlier_input else row


def _ended(found: PartitionEvidence, store: Overlaid) -> Iterator[Change]:
    """Tombstones for rows that the changelog holds and the recovered state does not."""
    for key, _ in changelog_rows(found.store):
        if key != keys.SETTINGS_KEY and store.named(key) is None:
            yield key, None


class _Nothing:
    """A store of nothing."""

    def get(self, _key: bytes) -> bytes | None:
        """Nothing is there."""
        return None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a store of nothing is not asked for {name}")
