"""The fast path: most requests, kept in one loop over the batch.

A request on the fast path asks for a new schedule of a known tenant at its owning partition, with
nothing special about it; `wire/quick.py` leaves it as bytes.  It is kept here without the values
that pass between the parts of `Intake.take`, at a fifth of the cost.  `take` means the same: a
property test holds the two to the same effects.  A request that needs more, or turns out to meet a
schedule that exists, is left to `take`, in the order of the batch.

    batch      p1   p2   g3   p4   p5          p: plain, g: general
    keep       ──────►│ yields g3 │───────►
    take                  g3                   sees p1 and p2 as kept, and p4 not yet

The caller pulls the generator and does `take` for each record that it yields, so the order holds
although two parts do the work.  Names and ids of the whole batch are looked up in the store at
once, before the loop: one call for a thousand keys, and not a thousand calls.

The loop makes its checks on bytes: instants by their bounds, texts by the absence of anything
but printable ASCII.  Where a check is in doubt it is no refusal: the general way judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, Final

from belfry.engine.arrival import MOST_AHEAD_MS
from belfry.engine.emit import MOST_OVERHEAD_BYTES
from belfry.engine.groups import Groups
from belfry.engine.reports import SourcePartition
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import generation_at
from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEARS_100_MS
from belfry.schedules.outcomes import Outcome
from belfry.schedules.request import MAX_TEXT_BYTES, PLAIN_BYTES
from belfry.schedules.request_digest import digest_of_plain
from belfry.store.layout.keys import answer_key
from belfry.store.layout.pending import encode_plain
from belfry.store.layout.verdicts import REQUEST_ID_MS, encode_accepted
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.accepted import PlainAccepted
from belfry.wire.record import SourceRecord

NO_ROOM: Final = -1
_new: Final = tuple.__new__


class FastPath:
    """Keeps the plain requests of one partition's batches; called by the partition's thread."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        groups: Groups,
    ) -> None:
        self._waiting = waiting
        self._groups = groups
        self._source = place.topic, place.partition
        self._partition = place.partition
        self._homes = place.homes
        self._first_life = generation_at(place.partition, 0)
        self._store = store
        self._tenants = tenants

    def keep(
        self,
        records: Sequence[SourceRecord],
        requests: Sequence[Any],
        step: Step,
    ) -> Generator[tuple[SourceRecord, Any]]:
        """Keep the plain ones; yields each other (record, request) when its turn has come.

        Closed before its end, it has kept those before the last that it gave.
        """
        earliest_ms = max(step.scan.watermark_ms + 1, SECONDS_LIMIT)
        newest_ms, first_life = step.now_ms + MOST_AHEAD_MS, self._first_life
        names, answers = _keys_of(requests)
        found = self._store.prefetch([name for name in (*names, *answers) if name])
        careful = _any_odd_id(requests)
        isolated, keep_isolated = self._waiting.hints, self._waiting.keep_isolated
        keep, note, changed = self._store.keep_in_timeline, self._store.note, self._store.changed
        tell, told_ms, source = step.effects.lifecycle.append, step.now_ms, self._source
        rooms: dict[bytes, int] = {}
        kept_of: list[bytes] = []
        all_of_them = zip(records, requests, names, answers, strict=True)
        try:
            for record, request, name, answer in all_of_them:
                if not name:
                    yield record, request
                    continue
                tenant, schedule_id, due_ms, event_type, group, _, _, request_id = request
                seq, accepted_ms, _, _, _ = record
                if (
                    not SECONDS_LIMIT <= accepted_ms <= newest_ms
                    or not earliest_ms <= due_ms <= accepted_ms + YEARS_100_MS
                    or name in changed
                    or found[name] is not None
                    or (careful and not _is_plain(schedule_id))
                    or (group is not None and not _is_plain(group))
                    or (event_type is not None and not _is_plain(event_type))
                    # An id that was answered before, or needs a closer look.
                    or (answer and (answer in changed or found[answer]))
                    or (careful and answer and not _is_plain(request_id))
                ):
                    yield record, request
                    continue
                life = first_life + seq
                kept = encode_plain(request, accepted_ms, seq, life)
                if len(kept) > (rooms.get(tenant) or self._room(tenant, rooms)):
                    yield record, request
                    continue
                if tenant in isolated:
                    keep_isolated(name, tenant, kept, (due_ms, seq))
                else:
                    keep(name, kept, due_ms, seq)
                if answer:
                    digest = digest_of_plain(request)
                    note(answer, encode_accepted(request, accepted_ms, life, digest), REQUEST_ID_MS)
                    asked = tenant, schedule_id, request_id
                    tell(_new(PlainAccepted, (name, asked, due_ms, life, told_ms, source, seq)))
                kept_of.append(tenant)
        finally:
            if kept_of:
                self._count(Counter(kept_of), step)

    def _count(self, kept_of: Counter[bytes], step: Step) -> None:
        """Count the kept requests of each tenant."""
        step.effects.outcomes[Outcome.ACCEPTED] += kept_of.total()
        step.effects.accepted.update(kept_of)
        step.effects.tenants.update([self._tenants.of_bytes(name).name for name in kept_of])

    def _room(self, name: bytes, rooms: dict[bytes, int]) -> int:
        """Bytes that a record of this tenant may have; none where it needs the general way.

        The general way makes a tenant known, so the next of its requests is asked for anew.
        """
        tenant = self._tenants.known(name)
        if tenant is None:
            return NO_ROOM
        told = tenant.signs or Outcome.ACCEPTED in tenant.written
        at_home = tenant.simple and self._homes.of(tenant.name) == self._partition
        at_home = at_home and not self._groups.moved(tenant.name)
        plain = at_home and not told
        if plain and tenant.queued:
            self._waiting.isolate(name)
        room = tenant.max_record_bytes - MOST_OVERHEAD_BYTES
        if tenant.claims_over is not None:
            # A larger payload is stored elsewhere, and a record is larger than its payload.
            room = min(room, tenant.claims_over)
        rooms[name] = room if plain else NO_ROOM
        return rooms[name]


def _keys_of(requests: Sequence[Any]) -> tuple[list[bytes], list[bytes]]:
    """Changelog keys of the schedules of plain requests, and of their verdicts.

    Empty for a request that is not plain, and for the verdict of one that has no id.
    """
    names = [b"%b/%b" % each[:2] if type(each) is tuple else b"" for each in requests]
    answers = [
        answer_key(each[0], each[-1]) if name and each[-1] is not None else b""
        for name, each in zip(names, requests, strict=True)
    ]
    return names, answers


def _any_odd_id(requests: Sequence[Any]) -> bool:
    """Whether any id, of a schedule or a request, is empty or not plain: then each is looked at."""
    plain = [request for request in requests if type(request) is tuple]
    ids = [request[1] for request in plain]
    ids += [request[-1] for request in plain if request[-1] is not None]
    return b"" in ids or bool(b"".join(ids).translate(None, PLAIN_BYTES))


def _is_plain(text: bytes) -> bool:
    """Whether a text needs no closer look."""
    return 0 < len(text) <= MAX_TEXT_BYTES and not text.translate(None, PLAIN_BYTES)
