"""Plain turns: occurrences of what recurs, fired and followed by the next without a detour.

A plain turn is in time, of a schedule without headers, jitter, targets or acknowledgements, whose
tenant takes plain fires, and the next one lies behind this step.  `Ruled` means the same by it; a
property test holds the two to the same effects.
"""

from __future__ import annotations

from collections.abc import Callable

from belfry.engine.effects import Effects
from belfry.engine.plan import bare_plan_of
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.schedules.identity import fire_id
from belfry.schedules.rule import has_targets
from belfry.store.layout.pending import next_record
from belfry.store.plain import decode_turn
from belfry.store.readable import UNREADABLE
from belfry.store.schedules import ScheduleStore
from belfry.wire.instants import rfc3339
from belfry.wire.record import Headers

TopicOf = Callable[[bytes, Effects], str]


class PlainTurns:
    """Fires the plain ones among what recurs; `topic_of` tells where, or nothing."""

    def __init__(
        self, store: ScheduleStore, waiting: Waiting, zones: ZoneChange, topic_of: TopicOf
    ) -> None:
        self._store = store
        self._waiting = waiting
        self._zones = zones
        self._topic_of = topic_of

    def fire(self, record: bytes, now_ms: int, effects: Effects) -> bool:
        """Fire this one and keep the next; False, and nothing done, where it is not plain."""
        turn = decode_turn(record)
        if turn is None:
            return False
        (due_ms, nominal_ms, seq, life, version, occurrence,
         tenant, schedule_id, group, key, rule, payload) = turn  # fmt: skip
        following_ms = self._following(rule, nominal_ms, occurrence, now_ms - due_ms)
        topic = "" if following_ms is None else self._topic_of(tenant, effects)
        if following_ms is None or not topic:
            return False
        name = b"%b/%b" % (tenant, schedule_id)
        identity = fire_id(name, life, version, nominal_ms)
        headers: Headers = [
            ("belfry-fire-id", identity),
            ("belfry-schedule-id", schedule_id),
            ("belfry-scheduled-at", rfc3339(nominal_ms)),
            ("belfry-occurrence", b"%d" % occurrence),
        ]
        if key is None:
            key = group or schedule_id
        effects.fired.append((topic, key, group, payload, headers))
        effects.fire_ids.append(identity)
        effects.lateness_ms.append(now_ms - due_ms)
        kept = next_record(record, following_ms, following_ms, occurrence + 1)
        self._store.keep_in_timeline(name, kept, following_ms, seq)
        return True

    def _following(self, rule: bytes, nominal_ms: int, occurrence: int, late_ms: int) -> int | None:
        """The instant of the next one; None where this one is not plain, or has none behind it."""
        if self._zones.under_way or has_targets(rule):
            return None
        try:
            plan = bare_plan_of(rule)
        except UNREADABLE:
            return None
        if not plan.plain or late_ms > plan.limit_ms or occurrence + 1 >= plan.max_fires:
            return None
        following_ms = plan.after_ms(nominal_ms)
        if following_ms is None or following_ms <= self._waiting.edge_ms:
            return None
        return following_ms
