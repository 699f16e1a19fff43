"""The last fires of a schedule, as its row tells them at every lifecycle level, for who looks.

    waits, and recurs     the last ten, out of its pending record (`layout/kept_fires.py`)
    fired once, is over   that fire, out of its marker
    else                  none: it has not fired, or its rule has come to its end

A fire of a TRIGGER or of a backfill is none of them: it leaves the row as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from belfry.schedules.identity import fire_id
from belfry.schedules.jitter import jitter_ms
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import last_fires
from belfry.store.layout.records import ENDED_FIRED, Marker


class LastFire(NamedTuple):
    """A fire; instants in epoch milliseconds.

    It stood for `missed` others that were late.  A marker does not tell its id, nor the instant by
    the rule: these are None.
    """

    fire_id: str | None
    scheduled_ms: int | None
    due_ms: int
    fired_ms: int
    missed: int = 0

    @property
    def late_ms(self) -> int:
        """How late it fired."""
        return self.fired_ms - self.due_ms


def fires_of_record(record: bytes) -> list[LastFire]:
    """The last fires of a schedule that waits, the oldest first; its record has to be readable."""
    row, found = decode_pending(record), list[LastFire]()
    for nominal_ms, version, late_ms, missed in last_fires(record):
        spread_ms = jitter_ms(row.name, nominal_ms, row.jitter_ms) if row.jitter_ms else 0
        due_ms = nominal_ms + spread_ms
        identity = fire_id(row.name, row.life, version, nominal_ms).decode()
        found.append(LastFire(identity, nominal_ms, due_ms, due_ms + late_ms, missed))
    return found


def fires_of_marker(marker: Marker) -> list[LastFire]:
    """The fire of a schedule that is over, where it was a one-shot and fired."""
    if marker.how != ENDED_FIRED:
        return []
    return [LastFire(None, None, marker.due_ms, marker.ended_ms)]
