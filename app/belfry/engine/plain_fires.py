"""Plain fires: most of what is due, fired in one loop over the chunk.

A plain fire is that of a single schedule without headers of its own, whose tenant takes payloads as
they are and wants nothing told.  It is fired here without the values that pass between the steps of
`Firing`, which means the same; a property test holds the two to the same effects.  Whatever is not
plain is left to `Firing`, in due order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.plain_turns import PlainTurns
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.schedules.identity import fire_id
from belfry.schedules.outcomes import Outcome
from belfry.schedules.tenants import StepTenants
from belfry.store.layout.records import encode_fired_marker
from belfry.store.plain import decode_plain
from belfry.store.schedules import ScheduleStore
from belfry.wire.instants import rfc3339
from belfry.wire.record import Headers

FIRST: Final = ("belfry-occurrence", b"0")


class PlainFires:
    """Fires the plain ones among the due rows of one partition."""

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting, zones: ZoneChange
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._topics: dict[bytes, str] = {}
        self._turns = PlainTurns(store, waiting, zones, self._topic_of)

    def fire(
        self, due: Iterable[tuple[bytes, bytes]], now_ms: int, effects: Effects
    ) -> Iterator[bytes]:
        """Fire the plain ones; yields the record of each other when its turn has come."""
        fired, end = effects.fired, self._store.end
        told_id, told_late = effects.fire_ids.append, effects.lateness_ms.append
        topics, fire_turn = self._topics, self._turns.fire
        topics.clear()
        for _, record in due:
            plain = decode_plain(record)
            if plain is None:
                if not fire_turn(record, now_ms, effects):
                    yield record
                continue
            due_ms, nominal_ms, life, version, tenant, schedule_id, group, key, payload = plain
            topic = topics.get(tenant) or self._topic(tenant, effects)
            if not topic:
                yield record
                continue
            name = b"%b/%b" % (tenant, schedule_id)
            identity = fire_id(name, life, version, nominal_ms)
            headers: Headers = [
                ("belfry-fire-id", identity),
                ("belfry-schedule-id", schedule_id),
                ("belfry-scheduled-at", rfc3339(nominal_ms)),
                FIRST,
            ]
            if key is None:
                key = group or schedule_id
            fired.append((topic, key, group, payload, headers))
            told_id(identity)
            told_late(now_ms - due_ms)
            end(name, encode_fired_marker(now_ms, due_ms, life, version, 1))

    def forget(self, tenant: bytes) -> None:
        """Ask anew whether this tenant's fires are plain: one that is not may change that."""
        self._topics.pop(tenant, None)

    def _topic_of(self, name: bytes, effects: Effects) -> str:
        return self._topics.get(name) or self._topic(name, effects)

    def _topic(self, name: bytes, effects: Effects) -> str:
        """Where a tenant's plain fires go; empty where its fires are not plain."""
        tenant = self._tenants.of_bytes(name)
        waits = tenant.aside or name in self._waiting.backlog or name in self._waiting.gates.tenants
        if waits or tenant.dressed or Outcome.FIRED in tenant.written:
            return ""
        if tenant.loose:
            effects.loose.add(tenant.topic)
        self._topics[name] = tenant.topic
        return tenant.topic
