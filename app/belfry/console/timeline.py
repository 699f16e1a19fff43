"""The timeline: the load to come of a tenant by minute, hour or day.

The API counts by minute, in buckets; longer spans are added up here.  Minutes that have passed show
when the last schedule of theirs left, and how late.  A bar leads to the span that it shows,
and the smallest ones to the schedules that are due then.
"""

from __future__ import annotations

from collections import Counter
from time import time
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request

from belfry.console.asking import Api, tenant_path
from belfry.console.page import Shown
from belfry.console.words import epoch_ms

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
STEPS: Final = {"minute": MINUTE, "hour": HOUR, "day": DAY}
SPANS: Final = {"minute": HOUR, "hour": 2 * DAY, "day": 60 * DAY}
MOST_BARS: Final = 400
MOST_PAGES: Final = 20
LAST_MS: Final = 253_402_300_799_999


async def view(api: Api, request: Request) -> Shown:
    """The load to come of one tenant."""
    asked = request.query_params
    tenant = asked.get("tenant", "").strip()
    step = asked.get("by", "minute")
    step = step if step in STEPS else "minute"
    start = _number(asked.get("from"), round(time() * 1000)) // STEPS[step] * STEPS[step]
    until = _number(asked.get("until"), start + SPANS[step])
    until = min(max(until, start + STEPS[step]), start + MOST_BARS * STEPS[step], LAST_MS)
    shown: dict[str, Any] = {
        "me": await api.get("/v1/me"), "tenant": tenant, "by": step, "steps": list(STEPS),
        "bars": [], "drained": [], "total": 0, "cut": False, "chart": "", "start_ms": start,
        "until_ms": until, "earlier": "", "later": "",
    }  # fmt: skip
    if tenant:
        counts, drained, cut = await _counts(api, tenant, start, until)
        bars = _bars(counts, tenant, step)
        shown |= {"bars": bars, "total": sum(each["pending"] for each in bars), "cut": cut}
        shown["drained"] = drained
        shown["chart"] = _chart(bars, start, until, STEPS[step])
        width = until - start
        shown["earlier"] = _address(tenant, step, max(0, start - width), start)
        shown["later"] = _address(tenant, step, until, until + width)
    return "timeline.html", shown


async def _counts(
    api: Api, tenant: str, start: int, until: int
) -> tuple[Counter[int], list[dict[str, Any]], bool]:
    """Schedules by the minute in which they are due, minutes that ended, whether more are left."""
    found: Counter[int] = Counter()
    drained: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(MOST_PAGES):
        path = f"{tenant_path(tenant)}/counts"
        page = await api.get(path, due_from=start, due_until=until, cursor=cursor)
        for each in page["counts"]:
            found[epoch_ms(each["minute"])] += each["pending"]
        drained += page["drained"]
        cursor = page["cursor"]
        if not cursor:
            return found, drained, False
    return found, drained, True


def _bars(counts: Counter[int], tenant: str, step: str) -> list[dict[str, Any]]:
    size = STEPS[step]
    summed: Counter[int] = Counter()
    for minute, pending in counts.items():
        summed[minute // size * size] += pending
    return [
        {
            "start_ms": start,
            "pending": pending,
            "address": _zoomed(tenant, step, start, start + size),
        }
        for start, pending in sorted(summed.items())
    ]


def _zoomed(tenant: str, step: str, start: int, until: int) -> str:
    finer = {"day": "hour", "hour": "minute"}.get(step)
    if finer is not None:
        return _address(tenant, finer, start, until)
    asked = {"tenant": tenant, "due_from": start, "due_until": until}
    return "/console/schedules?" + urlencode(asked)


def _address(tenant: str, step: str, start: int, until: int) -> str:
    asked = {"tenant": tenant, "by": step, "from": start, "until": until}
    return "/console/timeline?" + urlencode(asked)


def _chart(bars: list[dict[str, Any]], start: int, until: int, size: int) -> str:
    """What `page.js` draws: instants in seconds, and counts."""
    counted = {each["start_ms"]: each["pending"] for each in bars}
    instants = range(start, until, size)
    counts = [counted.get(each, 0) for each in instants]
    return orjson.dumps([[each / 1000 for each in instants], counts]).decode()


def _number(given: str | None, otherwise: int) -> int:
    try:
        return min(max(int(given or ""), 0), LAST_MS)
    except ValueError:
        return otherwise
