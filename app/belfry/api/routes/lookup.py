"""Looking one schedule up, in the partition where it lives or in one where it may have lived.

A tenant's spread may change, so a schedule may lie where an earlier spread put it. `ScheduleLookup`
asks its home first and then the former ones, and the first that has it answers.

`GatheredLookups` gathers the lookups of one turn of the event loop, and reads them together:

    turn 1   GET a (partition 2), GET b (2), GET c (5) arrive: three futures, one `call_soon`
    turn 2   one read of a and b in partition 2, one of c in partition 5; the futures are settled
             partition 5 is not held here: c alone fails, with `NotHeld`, and is asked elsewhere

A read of the store may wait for the disk. One that reads many rows lets the engine's threads go on
meanwhile, one of a single row does not; and the more callers there are, the more of them share a
wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

import orjson
from fastapi import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.json import occurrences, shapes
from belfry.api.json.queries import Shown
from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.routes.unfinished import Finishing, unfinished
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.waiting import waiting
from belfry.engine.payloads import decrypted
from belfry.schedules.identity import etag_of
from belfry.schedules.rule import has_targets
from belfry.store.last_fires import LastFire, counts_of_record, fires_of_marker, fires_of_record
from belfry.store.layout.keys import schedule_key
from belfry.store.layout.pending import Encrypted
from belfry.store.layout.pending_bytes import is_one_shot
from belfry.store.lookup import ScheduleStatus, standings_of
from belfry.store.readable import why_unreadable, why_unreadable_rule
from belfry.store.upcoming import upcoming
from belfry.tenants.payload_keys import Undecryptable

# Occurrences are found in the loop that answers everybody, so it takes no longer than this.
LONGEST_S: Final = 0.05
NO_MORE: Final = Shown()

# Changelog keys that are asked for, each with the future of its caller.
Asked = list[tuple[bytes, asyncio.Future[ScheduleStatus | None]]]
# The value of a future: a schedule, None if it does not exist, or why it could not be read.
Found = ScheduleStatus | Exception | None


class ScheduleLookup:
    """Looks single schedules up, where they live and where they may have lived before."""

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._reads = reads
        self._gathered = GatheredLookups(reads, parts.now_ms)
        self._finishing = Finishing(parts)
        self._parts = parts

    async def look_up(
        self,
        request: Request,
        caller: Principal,
        tenant: str,
        schedule_id: str,
        wanted: Shown = NO_MORE,
    ) -> Response:
        """The answer that shows a schedule with the wanted parts; 404 if it does not exist.

        A target's credentials are masked for a caller that may not see them. The `etag` names
        generation and version, for `If-Match`.
        """
        name = schedule_key(tenant, schedule_id)

        async def look(partition: int) -> Response:
            found = self._decrypted(await self._gathered.standing(partition, name), tenant)
            waits = {} if found is None else self._waiting(found, tenant, partition)
            if found is not None:
                waits |= shapes.masked_for(caller, found) | _following(found, wanted.next)
                waits |= _fired(found, wanted.last) | shapes.source_in(found, partition)
            answer = _shown(found, waits, request.url.path, schedule_id)
            fires = found is not None and bool(waits.get("last_fires"))
            return unfinished(answer, found, ends=fires and self._delivers(found, tenant))

        for home in self._reads.homes(request, tenant, schedule_id):
            answer = await self._reads.answer(request, caller, home, look, tenant)
            if answer.status_code != HTTPStatus.NOT_FOUND:
                break
        return await self._finishing.done(answer, (tenant, schedule_id), caller)

    def _decrypted(self, found: ScheduleStatus | None, tenant: str) -> ScheduleStatus | None:
        """A schedule with its payload as it was sent; as it lies there, where no key opens it."""
        row = None if found is None else found.pending
        if found is None or row is None or type(row.payload) is not Encrypted:
            return found
        keys = self._parts.ready.holdings.payload_keys(tenant)
        with suppress(Undecryptable):
            return found._replace(pending=decrypted(row, tenant, keys))
        return found

    def _delivers(self, found: ScheduleStatus | None, tenant: str) -> bool:
        """Whether its fires may have deliveries; an ended schedule does not tell its targets."""
        if found is None:
            return False
        known = self._parts.ready.holdings.tenant(tenant)
        of_tenant = known is not None and bool(known.effective.policy.http_targets)
        return of_tenant or found.pending is None or has_targets(found.pending.extra)

    def _waiting(self, found: ScheduleStatus, tenant: str, partition: int) -> dict[str, Any]:
        """The fields that say what it waits for besides its due instant."""
        holdings = self._parts.ready.holdings
        wait, stands_still = holdings.waits(partition, tenant)
        now_ms = int(self._parts.now_ms())
        return waiting(found, holdings.tenant(tenant), now_ms, wait, stands_still)


def _following(found: ScheduleStatus, count: int) -> dict[str, Any]:
    """The occurrences to come; empty for a schedule that is over, or that cannot be read."""
    if not count:
        return {}
    row = found.pending
    if row is None or why_unreadable_rule(row.extra):
        return {"next_occurrences": []}
    deadline_s = monotonic() + LONGEST_S
    found_ones = upcoming(row, count, lambda: monotonic() < deadline_s)
    return {"next_occurrences": [occurrences.upcoming_json(each) for each in found_ones]}


def _fired(found: ScheduleStatus, count: int) -> dict[str, Any]:
    """The last fires, and for a recurring schedule counts of all; empty if unreadable."""
    if not count:
        return {}
    fires: list[LastFire] = []
    counted: dict[str, Any] = {}
    if found.marker is not None:
        fires = fires_of_marker(found.marker)
    elif not why_unreadable(found.record):
        fires = fires_of_record(found.record)
        counted = _counted(found.record)
    return {"last_fires": [occurrences.fired_json(each) for each in fires[-count:]], **counted}


def _counted(record: bytes) -> dict[str, Any]:
    """Counts of a recurring schedule's fires; null if they were not counted."""
    if is_one_shot(record):
        return {}
    counts = counts_of_record(record)
    return {"fires": None if counts is None else occurrences.counts_json(counts)}


def _shown(
    found: ScheduleStatus | None, waits: dict[str, Any], path: str, schedule_id: str
) -> Response:
    """A schedule as an answer, or the problem that there is none."""
    if found is None:
        detail = f"The tenant has no schedule {schedule_id!r}."
        return problem_response(Problem(HTTPStatus.NOT_FOUND, detail, "not_found"), path)
    shown = shapes.whole(found) | waits
    headers = {"etag": f'"{etag_of(shown["generation"], shown["version"])}"'}
    return Response(orjson.dumps(shown), HTTPStatus.OK, headers, "application/json")


class GatheredLookups:
    """Gathers lookups, and reads each partition once a turn; belongs to one event loop."""

    def __init__(self, reads: Reads, now_ms: Callable[[], float]) -> None:
        self._reads = reads
        self._now_ms = now_ms
        self._asked: dict[int, Asked] = {}

    async def standing(self, partition: int, name: bytes) -> ScheduleStatus | None:
        """The schedule of a changelog key, or None; raises `NotHeld` and `Moving`.

        It is read in the next turn of the loop, together with all others that are asked for by
        then.
        """
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._look)
        future: asyncio.Future[ScheduleStatus | None] = loop.create_future()
        self._asked.setdefault(partition, []).append((name, future))
        return await future

    def _look(self) -> None:
        """Read the gathered lookups, partition by partition, and settle all futures."""
        gathered, self._asked = self._asked, {}
        for partition, asked in gathered.items():
            names = [name for name, _ in asked]
            try:
                found: Sequence[Found] = self._found(partition, names)
            except NotHeld as error:
                found = [error] * len(asked)
            except Exception:  # noqa: BLE001  # of one lookup: it must not harm the others
                found = [self._alone(partition, name) for name in names]
            for (_, future), standing in zip(asked, found, strict=True):
                _tell(future, standing)

    def _alone(self, partition: int, name: bytes) -> Found:
        """One schedule, or why it cannot be read: another one of its read may be the broken one."""
        try:
            return self._found(partition, [name])[0]
        except Exception as error:  # noqa: BLE001  # the caller gets the error
            return error

    def _found(self, partition: int, names: list[bytes]) -> list[ScheduleStatus | None]:
        """Read these schedules in one call; raises `NotHeld`, `Moving`, or the error of a damaged
        row.
        """
        now_ms = int(self._now_ms())
        return self._reads.read(partition, lambda rows: standings_of(rows, names, now_ms))


def _tell(future: asyncio.Future[ScheduleStatus | None], found: Found) -> None:
    """Settle a future, unless its caller has gone meanwhile."""
    if future.done():
        return
    if isinstance(found, Exception):
        future.set_exception(found)
    else:
        future.set_result(found)
