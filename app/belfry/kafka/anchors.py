"""The anchor: the identity of each partition's state, kept apart from the changelog.

So it survives the changelog's loss. It is the metadata of an offset that a group without members
has committed for `belfry.tenants`: that topic is compacted and is no partition's input or state,
and Kafka keeps offsets in another topic. An offset is forgotten some days after its last commit
(`offsets.retention.minutes`), so it is committed again every hour. The anchor is only read if the
changelog does not have the answer itself.

An owner that has been fenced may write its identity once more after a recovery has begun another
generation. So an anchor is read before it is written over, and a newer generation stays. Kafka
cannot do both in one step: an owner that writes in between is corrected by the next write.

A belfry that has grown has partitions that `belfry.tenants` does not have, and Kafka refuses
offsets for them.  Each of them has a group of its own, which keeps its anchor for partition 0:

    partition 3     group belfry.identity, belfry.tenants, partition 3
    partition 12    group belfry.identity.12, belfry.tenants, partition 0

If that is refused as well, an error says so, and the other anchors are still kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from belfry.kafka.offset_notes import OffsetNotes
from belfry.settings import SharedSettings
from belfry.store.identity import Identity, identity_of, identity_text


def anchor_group(settings: SharedSettings) -> str:
    """The group without members that keeps the anchor of each partition's state."""
    return f"{settings.cluster.app_id}.identity"


class SomeNotKept(ConnectionError):
    """Some anchors were refused; `kept` are the partitions of those that were written."""

    def __init__(self, why: str, kept: frozenset[int]) -> None:
        super().__init__(why)
        self.kept = kept


class Anchors:
    """Reads and writes anchors; ConnectionError if the cluster does not answer.

    Any thread may use it. To write the same once more changes nothing.
    """

    def __init__(
        self, notes: OffsetNotes, own: Callable[[int], OffsetNotes] | None = None, first: int = 1
    ) -> None:
        """`notes` are of all partitions, `own` of a partition that the topic does not have.

        The topic has all partitions below `first`, so none of these has to be asked for twice.
        """
        self._notes = notes
        self._own_notes = own
        self._first = first
        self._made: dict[int, OffsetNotes] = {}

    def read(self, partition: int) -> Identity | None:
        """The identity that was kept last, or None for none."""
        return self._read((partition,)).get(partition)

    def _read(self, partitions: Iterable[int]) -> dict[int, Identity]:
        """The identities that were kept last, of those partitions that have one."""
        asked = list(partitions)
        kept = self._notes.read(asked)
        for partition in asked:
            notes = None if partition in kept else self._own(partition)
            if notes is not None and (text := notes.read((0,)).get(0)) is not None:
                kept[partition] = text
        return {partition: identity_of(text) for partition, text in kept.items()}

    def _own(self, partition: int) -> OffsetNotes | None:
        """The notes of one partition alone; None if the topic surely has the partition."""
        if self._own_notes is None or partition < self._first:
            return None
        if partition not in self._made:
            self._made[partition] = self._own_notes(partition)
        return self._made[partition]

    def _write(self, told: Mapping[int, str]) -> dict[int, str]:
        """Keep these texts; returns why some were refused, by partition."""
        failed = self._notes.write(told)
        for partition in list(failed):
            notes = self._own(partition)
            if notes is not None and not notes.write({0: told[partition]}):
                del failed[partition]
        return failed

    def write(self, identities: Mapping[int, Identity]) -> dict[int, Identity]:
        """Keep the identities of these partitions; never one of an earlier generation.

        Returns the anchors that are newer and were left as they are. Raises SomeNotKept if some are
        refused.
        """
        kept = self._read(identities)
        newer = {
            partition: kept[partition]
            for partition, identity in identities.items()
            if partition in kept and kept[partition].generation > identity.generation
        }
        told = {
            partition: identity_text(identity)
            for partition, identity in identities.items()
            if partition not in newer
        }
        failed = self._write(told) if told else {}
        if failed:
            first = min(failed)
            why = f"group {self._notes.group}, partition {first}: {failed[first]}"
            raise SomeNotKept(why, frozenset(identities.keys() - failed.keys()))
        return newer


def anchors_of(settings: SharedSettings, homes: int = 1) -> Anchors:
    """The anchors of a belfry; `homes` is its first number of partitions, or less."""
    group, topic = anchor_group(settings), settings.topic("tenants")

    def own(partition: int) -> OffsetNotes:
        return OffsetNotes(settings, f"{group}.{partition}", topic)

    return Anchors(OffsetNotes(settings, group, topic), own, homes)
