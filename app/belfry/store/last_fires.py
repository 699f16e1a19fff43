"""The last fires of a schedule, as its row tells them at every lifecycle level, for readers.

    waits, and recurs     the last ten, out of its pending record (`layout/kept_fires.py`)
    fired once, is over   that fire, out of its marker
    else                  none: it has not fired, or its rule has come to its end

How all fires of a schedule that recurs went, the number of its occurrence and its tally say.

A fire of a TRIGGER or of a backfill is not among them: it leaves the row as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from belfry.schedules.identity import fire_id
from belfry.schedules.jitter import jitter_ms
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import (
    KEPT_FIRES,
    kind_and_flags,
    last_fires,
    occurrence_of,
    tally_of,
)
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


class FireCounts(NamedTuple):
    """How the occurrences of a schedule went, since its rule is as it is.

    `fired` came out, of which `over_1s` were more than a second late, at most by `latest_ms`;
    `missed` did not: they were given up, or another fire stood for them.
    """

    fired: int
    over_1s: int
    missed: int
    latest_ms: int

    @property
    def success_rate(self) -> float | None:
        """Fires among all that came due; None where nothing has."""
        return _share(self.fired, self.fired + self.missed)

    @property
    def share_within_1s(self) -> float | None:
        """Fires at most a second late; None where nothing fired."""
        return _share(self.fired - self.over_1s, self.fired)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def counts_of_record(record: bytes) -> FireCounts | None:
    """How the fires of a schedule that recurs and waits went; None where they were not counted."""
    number = occurrence_of(record)
    if number and not kind_and_flags(record)[1] & KEPT_FIRES:
        return None
    late, missed, latest_ms, first = tally_of(record)
    return FireCounts(number - first, late, missed, latest_ms)


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
