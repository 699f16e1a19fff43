"""Laying rows into the overlay that the changelog holds already, many at once.

A step changes schedules one by one, by the verbs of `schedules.py`, and each change is one of the
changelog as well.  A replay repeats the changelog, so it has nothing to tell it, and lays its rows
in a few loops:

    lay_waiting   schedules wait in the timeline by their records          pending + 1 each
    lay_gone      these leave the timeline, where they were committed      pending - 1 each
    lay_rows      what lies under names: markers, verdicts, nothing

A schedule that moves within the timeline leaves it first and waits there anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from belfry.store.layout.locations import timeline_keys_at, timeline_places_of
from belfry.store.overlaid import Overlaid


class Laid(Overlaid):
    """Schedules of a partition, and the verbs of a replay for many of them."""

    def lay_waiting(self, names: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Let schedules wait in the timeline that wait nowhere, by their pending records."""
        places, locations = timeline_places_of(records)
        self._named.update(zip(names, locations, strict=True))
        self._records.update(zip(places, records, strict=True))
        self._pending_change += len(names)

    def lay_gone(self, names: Sequence[bytes], locations: Sequence[bytes]) -> None:
        """Let committed records leave the timeline, where they were by these locations.

        The new rows under the names have to be laid there separately.
        """
        left = timeline_keys_at(locations)
        self._records.update(dict.fromkeys(left))
        self._left.left_timeline(names, left)
        self._pending_change -= len(names)

    def lay_rows(self, rows: Mapping[bytes, bytes | None]) -> None:
        """Keep rows under changelog keys (None: there is none); no schedule waits by them."""
        self._named.update(rows)
