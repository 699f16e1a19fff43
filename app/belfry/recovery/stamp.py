"""Stamps of local state: whose it is, as JSON in a row of the store itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import orjson

from belfry.store.identity import differ

# Another number makes all local state be rebuilt.
STORE_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class Stamp:
    """The cluster, topic and partition of local state; state with another stamp is not used."""

    cluster_id: str
    topic_id: str
    partition: int
    format: int = STORE_FORMAT

    def encode(self) -> bytes:
        """The stamp as it lies in the store."""
        return orjson.dumps([self.format, self.cluster_id, self.topic_id, self.partition])

    def fits(self, kept: bytes) -> bool:
        """Whether state with that stamp is this one's, as far as the ids of topics are known."""
        _, topic_id = stamp_of(kept)
        told = self.topic_id if differ(topic_id, self.topic_id) else topic_id
        return replace(self, topic_id=told).encode() == kept


def stamp_of(stamp: bytes) -> tuple[str, str]:
    """Cluster and changelog topic in a stamp of any format; empty where it does not tell."""
    try:
        _, cluster, topic, *_ = orjson.loads(stamp)
    except ValueError:
        return "", ""
    return str(cluster), str(topic)
