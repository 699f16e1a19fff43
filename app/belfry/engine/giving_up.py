"""Giving up: the end of a schedule that waits for an acknowledgement which nobody can give."""

from __future__ import annotations

from typing import Final

from belfry.engine.step import Step
from belfry.schedules.identity import generation_of
from belfry.schedules.outcomes import Outcome
from belfry.schedules.triggers.acknowledged import FAR_MS
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import ENDED_MISSED, MARKER_MS, Marker, encode_marker
from belfry.store.schedules import ScheduleStore
from belfry.wire.lifecycle import LifecycleEvent

CODE: Final = "never_acknowledged"
EVENT_BYTES: Final = 300


def give_up(store: ScheduleStore, name: bytes, whom: bytes, step: Step) -> None:
    """End one that waits for nobody, unless it has an instant by which it fires.

    `whom` is the schedule that it waits for, which is gone.
    """
    place = store.named(name)
    assert place is not None, "who waits behind a lock has a place"
    row = decode_pending(store.pending_at(name, place))
    if row.due_ms < FAR_MS:
        return
    now_ms = step.now_ms
    ended = Marker(ENDED_MISSED, now_ms, now_ms, row.life, row.version, row.occurrence)
    store.remove(name, place)
    store.end(name, encode_marker(ended), MARKER_MS)
    step.effects.outcomes[Outcome.MISSED] += 1
    step.effects.room -= EVENT_BYTES
    step.effects.lifecycle.append(
        LifecycleEvent(
            tenant=row.tenant.decode(),
            schedule_id=row.schedule_id.decode(),
            outcome=Outcome.MISSED,
            version=row.version,
            at=now_ms,
            code=CODE,
            reason=f"it waits for the acknowledgement of {whom.decode(errors='replace')!r}, of"
            " which nothing is left: it is over, and no fire of it is to be acknowledged",
            generation=generation_of(row.life),
        )
    )
