"""Large payloads of one partition on their way to their store, while the partition fires.

    step ─► effects.objects ─┬─ stored, or within 5 ms ──────────► the step goes on to its commit
                             └─ not yet ─► rolled back ─► steps that only fire ─► stored, or away
                                                          └► the same requests once more

So a slow store holds up the intake of a partition, for half a second at most, and never an event.
When the requests are taken in again, their payloads are known to be stored, or the engine refuses
them because the store is away.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Effects
from belfry.outputs.payload_store import PayloadStore
from belfry.outputs.payload_writing import Writing
from belfry.partitions.term import Owned

# A step itself waits for so long, which is less work than to do the step again.
SOON_S: Final = 0.005


class EarlyPayloads:
    """The writing of payloads that one partition waits for; belongs to its thread."""

    def __init__(self, store: PayloadStore) -> None:
        self._store = store
        self._writing: Writing | None = None

    @property
    def under_way(self) -> bool:
        """Whether requests have to wait for the store."""
        if self._writing is None:
            return False
        if not self._writing.over():
            return True
        self._store.end(self._writing)
        self._writing = None
        return False

    def puts_off(self, owned: Owned, effects: Effects | None) -> bool:
        """Roll back a step whose payloads are not stored yet; returns whether it was."""
        if effects is None or not effects.objects:
            return False
        self._writing = self._store.begin(effects.objects)
        if self._writing is None or (self._writing.over(SOON_S) and self._writing.error is None):
            self._writing = None
            return False
        owned.engine.aborted()
        owned.rolled_back()
        return True
