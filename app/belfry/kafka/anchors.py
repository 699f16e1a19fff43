"""The anchor: the identity of each partition's state, kept where the changelog's loss leaves it.

It is the metadata of an offset that a group without members has committed for `belfry.tenants`:
that topic is compacted and is nobody's input or state, and Kafka keeps offsets elsewhere again.  An
offset is forgotten some days after its last commit (`offsets.retention.minutes`), so it is said
again every hour.  The anchor is asked only where the changelog does not tell by itself.

An owner that has been fenced may say its identity once more after a recovery has begun another
generation.  So what is kept is read before it is written over, and a newer generation stays.  Kafka
has no way to do both in one: an owner that writes in between is corrected by the next write.

Kafka keeps an offset for any number of a partition.  A cluster that refuses those which the topic
does not have keeps no anchor for them: that is said, and the other anchors are kept all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from belfry.kafka.offset_notes import OffsetNotes
from belfry.settings import SharedSettings
from belfry.store.identity import Identity, identity_of, identity_text


def anchor_group(settings: SharedSettings) -> str:
    """The group without members that keeps what is said of each partition's state."""
    return f"{settings.cluster.app_id}.identity"


class SomeNotKept(ConnectionError):
    """Some anchors were refused; `kept` are the partitions of those that were written."""

    def __init__(self, why: str, kept: frozenset[int]) -> None:
        super().__init__(why)
        self.kept = kept


class Anchors:
    """Reads and writes anchors; ConnectionError where the cluster does not answer.

    Any thread may use it. To write the same once more changes nothing.
    """

    def __init__(self, notes: OffsetNotes) -> None:
        self._notes = notes

    def read(self, partition: int) -> Identity | None:
        """The identity that was kept last, or None for none."""
        return self._read((partition,)).get(partition)

    def _read(self, partitions: Iterable[int]) -> dict[int, Identity]:
        """The identities that were kept last, of those partitions that have one."""
        kept = self._notes.read(partitions)
        return {partition: identity_of(text) for partition, text in kept.items()}

    def write(self, identities: Mapping[int, Identity]) -> dict[int, Identity]:
        """Keep the identities of these partitions; never one of an earlier generation.

        Returns what is kept of those partitions whose anchors are newer, and were left as they are.
        Raises SomeNotKept where some are refused.
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
        failed = self._notes.write(told) if told else {}
        if failed:
            first = min(failed)
            why = f"group {self._notes.group}, partition {first}: {failed[first]}"
            raise SomeNotKept(why, frozenset(identities.keys() - failed.keys()))
        return newer


def anchors_of(settings: SharedSettings) -> Anchors:
    """The anchors of a belfry."""
    return Anchors(OffsetNotes(settings, anchor_group(settings), settings.topic("tenants")))
