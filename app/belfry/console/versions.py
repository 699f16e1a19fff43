"""Versions of a schedule: the request behind each, and its changes.

belfry keeps the latest definition alone.  A history tells where each request was received, and its
topic keeps it for a while, so the last ones can be read there and compared, the newest first.

    GET …/schedules/{id}/history     UPDATED, version 4, received at belfry.schedules/1, offset 8
    GET …/requests/1-8               the request that lies there
    version 4                        - cron: 0 9 * * *
                                     + cron: 0 10 * * *

A request that is kept no longer, or came in on another topic, is shown as unknown, and the version
behind it in full: a difference from something unknown would be a guess. Credentials are masked by
the API before a comparison, so two secrets look the same.
"""

from __future__ import annotations

import json
from difflib import ndiff
from typing import Any, Final

from starlette.requests import Request

from belfry.console.asking import Api, tenant_path
from belfry.console.one_schedule import LAST, events_of
from belfry.console.page import Shown

# Events that are searched for versions of the schedule: the most of one page.
MOST_EVENTS: Final = 1_000
DEFINING: Final = frozenset({"ACCEPTED", "UPDATED"})
# Events of these outcomes that are no version: the last fire is asked to end, or was acknowledged.
NO_VERSION: Final = frozenset({"cancel_other", "acknowledged"})
# A line of a comparison: "+" came, "-" went, " " stayed.
Line = tuple[str, str]


async def view(api: Api, request: Request) -> Shown:
    """The last versions of a schedule."""
    tenant = request.query_params.get("tenant", "")
    schedule_id = request.query_params.get("id", "")
    me = await api.get("/v1/me")
    events = await events_of(api, tenant, schedule_id, MOST_EVENTS)
    defining = [
        each for each in events if each["outcome"] in DEFINING and each["code"] not in NO_VERSION
    ][-LAST:]
    asked = [await _asked(api, tenant, schedule_id, each) for each in defining]
    versions = [
        {**event, "lines": compared(asked[n - 1] if n else None, asked[n]), "is_first": n == 0}
        for n, event in enumerate(defining)
    ]
    return "versions.html", {
        "me": me,
        "tenant": tenant,
        "id": schedule_id,
        "versions": versions[::-1],
    }


async def _asked(
    api: Api, tenant: str, schedule_id: str, event: dict[str, Any]
) -> dict[str, Any] | None:
    """The request behind an event; None where it is kept no longer, or was received elsewhere."""
    partition, offset = event["source_partition"], event["source_offset"]
    if partition is None or offset is None:
        return None
    path = f"{tenant_path(tenant)}/requests/{partition}-{offset}"
    found = await api.found(path, topic=event["source_topic"])
    if found is None or found["schedule_id"] != schedule_id:
        return None
    asked: dict[str, Any] = found["request"]
    return asked


def compared(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[Line] | None:
    """The fields that one request changes against the one before; all if that is unknown.

    None if the request itself is unknown. Name and reason of a request are not part of the
    schedule's definition.
    """
    if after is None:
        return None
    old = None if before is None else _lines(before)
    new = _lines(after)
    if old is None:
        return [(" ", line) for line in new]
    return [(line[0], line[2:]) for line in ndiff(old, new) if line[0] in "+-"]


def _lines(asked: dict[str, Any]) -> list[str]:
    """A request as lines `name: value`, sorted by name, so that two can be compared."""
    lines: list[str] = []
    for name in sorted(asked):
        if name in ("action", "reason"):
            continue
        value = asked[name]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *more = text.split("\n")
        lines += [f"{name}: {first}", *(f"    {each}" for each in more)]
    return lines
