"""Requests of the canary, as a user would send them: by belfry's own tenant, to each partition.

A user's tenant has one home, or a few. The canary needs an event on each partition.  So its tenant
is spread over many shards, and for each partition the canary searches an id whose hash leads there:

    partition 3, slot 1 205    ids 3.5.0, 3.5.1, 3.5.2 …: the first whose home is partition 3

Sixty ids of a partition are used in turn (slot modulo 60), and each request replaces the schedule
of an hour or some minutes before, which has fired by then.
"""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple
from zlib import crc32

from belfry.canary.slots import AHEAD_MS, Probe
from belfry.schedules.fields import EMPTY
from belfry.schedules.identity import Homes
from belfry.schedules.outcomes import Outcome
from belfry.tenants.canary import CANARY, CANARY_SHARDS
from belfry.wire import catalogue
from belfry.wire.accepted import PlainAccepted, Told
from belfry.wire.claims import signature
from belfry.wire.record import SIGNATURE, Headers

# Ids of a partition, used in turn, so that its rows for them do not grow in number.
IDS: Final = 60
ACCEPTED: Final = frozenset({Outcome.ACCEPTED, Outcome.UPDATED})
_TENANT: Final = CANARY.encode()


class CanaryRequest(NamedTuple):
    """A request, as it is to be produced."""

    partition: int
    key: bytes
    value: bytes
    headers: Headers


class CanaryRequests:
    """Makes requests; ids that lead to a partition are searched once and remembered.

    It is used by the canary's thread alone.
    """

    def __init__(self, homes: Homes, head: bytes, key: bytes) -> None:
        """`head` stands before a request; `key` signs it, where workers sign."""
        self._homes = homes
        self._head = head
        self._key = key
        self._ids: dict[tuple[int, int], str] = {}

    def request(self, probe: Probe) -> CanaryRequest:
        """The request for a probe's event."""
        schedule_id = self.schedule_id(probe)
        fields = {
            "tenant": CANARY,
            "schedule_id": schedule_id,
            "at": probe.due_ms,
            "payload": probe.payload(),
        }
        value = self._head + catalogue.encode("ScheduleRequest", {**EMPTY, **fields})
        route = f"{CANARY}/{crc32(schedule_id.encode()) % CANARY_SHARDS}".encode()
        signed = signature(self._key, CANARY, route, value, []) if self._key else None
        headers: Headers = [(SIGNATURE, signed)] if signed else []
        return CanaryRequest(probe.partition, route, value, headers)

    def schedule_id(self, probe: Probe) -> str:
        """An id whose home is the probe's partition."""
        place = probe.partition, probe.slot % IDS
        found = self._ids.get(place)
        if found is None:
            names = (f"{place[0]}.{place[1]}.{number}" for number in count())
            found = next(each for each in names if self._home(each) == probe.partition)
            self._ids[place] = found
        return found

    def _home(self, schedule_id: str) -> int:
        """The partition that a schedule of this id lives in."""
        return self._homes.of(CANARY, schedule_id, CANARY_SHARDS)


def accepted_in(event: Told, interval_ms: int) -> Probe | None:
    """The probe whose request was accepted, or None for any other event."""
    if isinstance(event, PlainAccepted):
        # Nearly all are of other tenants, so they are not decoded in full for this.
        return accepted_in(event.whole(), interval_ms) if event.asked[0] == _TENANT else None
    if event.tenant != CANARY or event.outcome not in ACCEPTED or event.due_at is None:
        return None
    partition = event.schedule_id.partition(".")[0]
    slot = (event.due_at - AHEAD_MS) // interval_ms
    return Probe(int(partition), slot, interval_ms) if partition.isdigit() else None
