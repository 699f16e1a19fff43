"""A MISSED event of an outage counts for each occurrence that it tells of."""

from __future__ import annotations

from belfry.history import counters
from belfry.history.history_store import HistoryEntry, HistoryStore
from belfry.schedules.outcomes import Outcome
from belfry.store.ordered_map import MemoryMap
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.lifecycle_heads import headline
from belfry.wire.missed import missed_reason

NOW_MS = 1_800_000_000_000


def entry(offset: int, outcome: Outcome, reason: str | None = None) -> HistoryEntry:
    event = LifecycleEvent(
        tenant="t", schedule_id="a", outcome=outcome, at=NOW_MS, due_at=NOW_MS, reason=reason
    )
    body = encode_lifecycle(event)
    return HistoryEntry(offset, headline(body), body)


def test_records_of_one_instant_that_tell_of_misses_alone_count_all_of_them() -> None:
    store = HistoryStore(MemoryMap())
    several = [entry(place, Outcome.MISSED, missed_reason(3, NOW_MS, "on")) for place in range(2)]
    store.add(0, several, 2)
    (counted,) = store.statistics(b"t", NOW_MS, NOW_MS + 1, {0}).hours.values()
    assert counters.shown(counted, fires_told=True)["missed"] == 6


def test_one_event_of_many_missed_occurrences_counts_them_all() -> None:
    store = HistoryStore(MemoryMap())
    words = missed_reason(3, NOW_MS, "on: another one fires for them")
    store.add(0, [entry(0, Outcome.MISSED, words), entry(1, Outcome.FIRED)], 2)
    (counted,) = store.statistics(b"t", NOW_MS, NOW_MS + 1, {0}).hours.values()
    shown = counters.shown(counted, fires_told=True)
    assert (shown["missed"], shown["success_rate"]) == (3, 0.25)


def test_an_event_that_names_no_number_counts_once() -> None:
    store = HistoryStore(MemoryMap())
    store.add(0, [entry(0, Outcome.MISSED), entry(1, Outcome.MISSED, "nobody is left")], 2)
    (counted,) = store.statistics(b"t", NOW_MS, NOW_MS + 1, {0}).hours.values()
    assert counters.shown(counted, fires_told=True)["missed"] == 2
