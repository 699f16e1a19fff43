"""How the deliveries of a schedule's last fires ended, and at which attempt: out of its history.

    fires      09:00 f1        10:00 f2        11:00 f3            out of the schedule's row
    history       f1 DELIVERED at attempt 3       f3 FAILED at 10  out of belfry.lifecycle
    shown      f1: one end     f2: none        f3: one end

Ends are told that failed, or took more than one attempt; at the lifecycle level ALL every one is.
So a fire without any arrived at its first attempt, or is still on its way.

The history of a schedule lies with one worker, often another one than the schedule itself: it is
asked as any other caller asks.  Where it does not answer, fires are shown without (null).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import orjson
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.json.occurrences import ended_json
from belfry.api.routes.history import shown_event
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import PeerUnreachable
from belfry.history.follower import Follower
from belfry.history.history_store import page
from belfry.history.layout import SortKey
from belfry.schedules.identity import partition_of
from belfry.schedules.instants import parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.keys import schedule_key
from belfry.wire.lifecycle import decode_lifecycle

# Events of a history that are looked at for ten fires; if there are more, the answer leaves them
# out.
MOST_EVENTS: Final = 1_000
ENDS: Final = frozenset({Outcome.DELIVERED, Outcome.FAILED})


class DeliveryEnds:
    """Asks histories how deliveries ended; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts

    async def added(self, shown: Response, name: tuple[str, str], caller: Principal) -> Response:
        """The same answer, each fire in it with the ends of its deliveries; `name`: tenant, id."""
        found = orjson.loads(shown.body)
        fires = found["last_fires"]
        events = await self._events(name, min(map(_fired_ms, fires)), caller)
        for each in fires:
            each["deliveries"] = None if events is None else _ends_of(each, events)
        headers = {"etag": shown.headers["etag"]}
        return Response(orjson.dumps(found), shown.status_code, headers, "application/json")

    async def _events(
        self, name: tuple[str, str], since_ms: int, caller: Principal
    ) -> list[dict[str, Any]] | None:
        """A schedule's events since an instant; None where its history does not tell them all."""
        source = self._parts.ready.history
        if source.store is None or not source.partitions:
            return None
        partition = partition_of(schedule_key(*name), source.partitions)
        if partition in source.followed:
            return _here(source, name, since_ms)
        return await self._elsewhere(source.home_of(partition), name, since_ms, caller)

    async def _elsewhere(
        self, home: int, name: tuple[str, str], since_ms: int, caller: Principal
    ) -> list[dict[str, Any]] | None:
        """The answer of the worker that follows this home's histories; None if none comes."""
        parts = self._parts
        directory = parts.ready.directory
        url = directory.holder(home)
        if url is None or url == directory.mine or not parts.internal_token.can_travel:
            return None
        tenant, schedule_id = (quote(each, safe="") for each in name)
        path = f"/v1/tenants/{tenant}/schedules/{schedule_id}/history"
        target = Target("GET", path, f"from={since_ms}&limit={MOST_EVENTS}")
        try:
            answer = await parts.peers.ask(url, target, caller, {})
        except PeerUnreachable:
            return None
        if answer.status_code != HTTPStatus.OK:
            return None
        told = orjson.loads(answer.body)
        events: list[dict[str, Any]] = told["events"]
        return events if told["cursor"] is None else None


def _fired_ms(fire: Mapping[str, Any]) -> int:
    return parse_instant(fire["fired_at"])


def _here(source: Follower, name: tuple[str, str], since_ms: int) -> list[dict[str, Any]] | None:
    """The same out of this worker's own store."""
    tenant, schedule_id = (each.encode() for each in name)
    store, (low_ms, until_ms) = source.store, source.reach_ms(tenant)
    assert store is not None
    start = SortKey(max(since_ms, low_ms), 0, 0)
    found = page(store.of_schedule(tenant, schedule_id, start, until_ms), MOST_EVENTS)
    if found.rest is not None:
        return None
    return [shown_event(decode_lifecycle(body), place) for place, body in found.found]


def _ends_of(fire: Mapping[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ends of one fire's deliveries, in their order.

    A schedule that is over does not tell the id of its fire: its due instant tells it.
    """
    named = "fire_id" if fire["fire_id"] is not None else "due_at"
    return [
        ended_json(each)
        for each in events
        if each["outcome"] in ENDS and each["target"] and each[named] == fire[named]
    ]
