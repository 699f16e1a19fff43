"""A recovery as one transaction, under the transactional id of the partition.

Taking that id fences the partition's owner, and a worker that takes it over meanwhile fences the
recovery. A commit has three ends: done, nothing committed for certain, and not known.

    recovery                                     a worker
    12:00:00  InitProducerId: epoch 8            its next commit (epoch 7) is refused
    12:00:00  reads again what nobody changes
    12:00:01  rows, tombstones, identity
    12:00:05  manifest                           12:00:05  may take over: epoch 9
    12:00:06  EndTxn                             then this is refused: look again

The rows of a whole partition (`recovered_rows.py`) go in one transaction, so its timeout is the
largest that brokers allow. `changelog_writer.py` fences, signs and commits.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.recovery.partition_evidence import CannotRecover, PartitionEvidence
from belfry.recovery.recovered_rows import changed_rows, manifest_of
from belfry.recovery.recovery_plan import RecoveryPlan
from belfry.settings import SharedSettings
from belfry.store.identity import encode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending_bytes import is_pending

# As long as brokers allow by default: all rows of a partition go in one transaction.
TRANSACTION_MS: Final = 900_000


class RecoveryWriter:
    """Writes recoveries of one partition; fences on entry.

    It runs in the thread of the command. Raises CannotRecover where the partition cannot be fenced.
    """

    def __init__(self, settings: SharedSettings, partition: int) -> None:
        self._settings = settings
        try:
            self._log = ChangelogWriter(settings, partition, TRANSACTION_MS)
        except KafkaException as error:
            raise CannotRecover(f"the partition cannot be fenced: {error.args[0].str()}") from error

    def abort_what_is_torn(self) -> None:
        """End open transactions of the partition's own producers, where the marker is gone."""
        try:
            self._log.abort_what_is_torn()
        except KafkaException as error:
            raise CannotRecover(f"nothing was changed: {error.args[0].str()}") from error

    def write(self, found: PartitionEvidence, plan: RecoveryPlan) -> Manifest:
        """Commit the rows of the plan; the manifest of the transaction.

        CannotRecover says whether nothing was committed, or whether that is not known.
        """
        try:
            self._log.begin(plan.identity.changelog)
            pending = 0
            settings = self._settings.cluster_fingerprint()
            for key, row in changed_rows(found, plan, settings):
                pending += row is not None and key[:1] != b"\0" and is_pending(row)
                self._log.row(key, row)
            manifest = manifest_of(found, plan, pending)
            self._log.row(keys.IDENTITY_KEY, encode_identity(plan.identity))
            self._log.row(keys.manifest_key(manifest.txn_seq), encode_manifest(manifest))
            self._log.see_place()
        except (KafkaException, BufferError) as error:
            raise _nothing_committed(error) from error
        self._commit()
        return manifest

    def _commit(self) -> None:
        """Commit; CannotRecover says whether nothing was committed, or whether that is not
        known.
        """
        try:
            self._log.commit()
        except (KafkaException, BufferError) as error:
            cause = error.args[0]
            if isinstance(cause, KafkaError) and _is_rolled_back(cause):
                raise _nothing_committed(error) from error
            # No answer in time, or a fence, which also meets a commit that is sent once more after
            # the answer to the first was lost.
            raise CannotRecover(
                f"it is not known whether the recovery was committed ({_words(cause)}); look again"
                " with `belfry recover` before anything else is done about this partition"
            ) from error

    def close(self) -> None:
        """Give the producers up."""
        self._log.close()


def _is_rolled_back(cause: KafkaError) -> bool:
    """Whether a commit that failed so was certainly none."""
    return cause.txn_requires_abort() and not cause.fatal()


def _words(cause: object) -> str:
    return cause.str() if isinstance(cause, KafkaError) else str(cause)


def _nothing_committed(error: KafkaException | BufferError) -> CannotRecover:
    """The error for a transaction that was certainly not committed."""
    told = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return CannotRecover(
        f"nothing was committed ({told}): a worker may have taken the partition over meanwhile;"
        " look again"
    )
