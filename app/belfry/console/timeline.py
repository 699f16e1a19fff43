"""The timeline: the load to come by minute, hour or day, and on its left past fires and lateness.

It answers when the next wave comes, and how well the last one went. `GET …/counts` counts the load
to come: minute buckets, which workers keep with every change, so the answer costs the same however
many schedules wait. Longer steps are added up here.

    step     at first                     a bar leads to
    day      7 days back, 60 to come      that day by hour
    hour     12 hours back, 2 days        that hour by minute
    minute   15 minutes back, an hour     the tenant's schedules that are due in that minute

Minutes that have passed show how late the last schedule of theirs left; hours and days show fires
as well, from `GET …/statistics`. Without a tenant, those with the most pending are added up. Spans,
pages and bars are bounded (`MOST_BARS`, `MOST_PAGES`), and a page that could not count all says so.

The whole state is the address: tenant, step and span. *Earlier*, *Later* and a drag over the chart
are addresses too, so the browser's way back works. The chart is drawn by `page.js` from numbers in
an attribute, and tables below it say the same for readers who cannot see it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from time import time
from typing import Any, Final, NamedTuple
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
# How much of the past and of the future is shown at first.
SPANS: Final = {
    "minute": (15 * MINUTE, HOUR),
    "hour": (12 * HOUR, 2 * DAY),
    "day": (7 * DAY, 60 * DAY),
}
MOST_BARS: Final = 400
MOST_PAGES: Final = 20
MOST_TENANTS: Final = 8
LAST_MS: Final = 253_402_300_799_999


class TimeRange(NamedTuple):
    """The shown span: instants in epoch ms, and the step by its name."""

    start: int
    until: int
    step: str

    @property
    def size(self) -> int:
        """Milliseconds of a step."""
        return STEPS[self.step]


class Load(NamedTuple):
    """Due schedules by minute, minutes that ended by the ms they were late, and hours of fires."""

    due: Counter[int]
    late: dict[int, int]
    fired: dict[int, tuple[int, int]]
    is_cut: bool


async def view(api: Api, request: Request) -> Shown:
    """The load to come of one tenant, or of those with the most of it."""
    asked = request.query_params
    tenant, now_ms = asked.get("tenant", "").strip(), round(time() * 1000)
    span = _span(asked.get("by"), asked.get("from"), asked.get("until"), now_ms)
    tenants = [tenant] if tenant else await _busiest(api)
    # Their partitions may be with several workers, which are asked beside one another.
    found = await asyncio.gather(*(_load(api, each, span) for each in tenants))
    loads = dict(zip(tenants, found, strict=True))
    bars = _bars(_summed(load.due for load in loads.values()), tenant, span)
    past = _past(loads.values(), span)
    width = span.until - span.start
    return "timeline.html", {
        "me": await api.get("/v1/me"),
        "tenant": tenant,
        "by": span.step,
        "steps": list(STEPS),
        "bars": bars,
        "past": past,
        "total": sum(each["pending"] for each in bars),
        "cut": any(load.is_cut for load in loads.values()),
        "chart": _chart(bars, past, span),
        "now_ms": now_ms,
        "tenants": [(each, load.due.total()) for each, load in loads.items()],
        "most": MOST_TENANTS,
        "here": _address(tenant, span.step, span.start, span.until),
        "earlier": _address(tenant, span.step, max(0, span.start - width), span.start),
        "later": _address(tenant, span.step, span.until, min(LAST_MS, span.until + width)),
    }


def _span(step: str | None, start: str | None, until: str | None, now_ms: int) -> TimeRange:
    """The span that an address asks for; without one, a part of the past and of the future."""
    first, last = _number(start), _number(until)
    if step not in STEPS:
        width = DAY if first is None or last is None else last - first
        step = "minute" if width <= 6 * HOUR else "hour" if width <= 10 * DAY else "day"
        step = "minute" if first is None else step
    size, (past, ahead) = STEPS[step], SPANS[step]
    begin = (now_ms - past if first is None else first) // size * size
    end = begin + past + ahead if last is None else -(-last // size) * size
    end = min(max(end, begin + size), begin + MOST_BARS * size, LAST_MS)
    return TimeRange(begin, end, step)


async def _busiest(api: Api) -> list[str]:
    """Tenants with pending schedules, those with the most first."""
    told = await api.get("/v1/tenants", limit=MOST_TENANTS, sort="pending", at_once="true")
    return [each["tenant"] for each in told["figures"] if each["pending"]]


async def _load(api: Api, tenant: str, span: TimeRange) -> Load:
    """The due schedules of one tenant in a span, and the passed ones; cut after `MOST_PAGES`."""
    due: Counter[int] = Counter()
    late: dict[int, int] = {}
    cursor, pages = "", 0
    while pages < MOST_PAGES and cursor is not None:
        asked = {"due_from": span.start, "due_until": span.until, "cursor": cursor}
        page = await api.get(f"{tenant_path(tenant)}/counts", **asked)
        for each in page["counts"]:
            due[epoch_ms(each["minute"])] += each["pending"]
        for each in page["drained"]:
            minute = epoch_ms(each["minute"])
            late[minute] = max(late.get(minute, 0), each["late_ms"])
        cursor, pages = page["cursor"], pages + 1
    fired = {} if span.step == "minute" else await _fired(api, tenant, span)
    return Load(due, late, fired, cursor is not None)


async def _fired(api: Api, tenant: str, span: TimeRange) -> dict[int, tuple[int, int]]:
    """Fires by hour, and those of them that were at most a second late."""
    asked = {"from": span.start, "until": span.until}
    answer = await api.ask("GET", f"{tenant_path(tenant)}/statistics", asked)
    # Histories are read anew after a start; the load to come is shown all the same.
    told = {"hours": []} if answer.status == HTTPStatus.SERVICE_UNAVAILABLE else answer.json()
    return {
        epoch_ms(each["hour"]): (each["fires"], each["within_1s"])
        for each in told["hours"]
        if each["fires"]
    }


def _summed(counts: Any) -> Counter[int]:
    """Counts by minute of several tenants, added up."""
    total: Counter[int] = Counter()
    for each in counts:
        total.update(each)
    return total


def _bars(counts: Counter[int], tenant: str, span: TimeRange) -> list[dict[str, Any]]:
    """The due schedules of each step that has any, and the address behind a click on it."""
    size = span.size
    summed: Counter[int] = Counter()
    for minute, pending in counts.items():
        summed[minute // size * size] += pending
    return [
        {
            "start_ms": start,
            "pending": pending,
            "address": _zoomed(tenant, span.step, start, start + size),
        }
        for start, pending in sorted(summed.items())
    ]


def _past(loads: Any, span: TimeRange) -> list[dict[str, Any]]:
    """The fires by step: the largest lateness of a minute, all fires, those within 1 s."""
    found: dict[int, dict[str, Any]] = {}

    def at(instant: int) -> dict[str, Any]:
        start = instant // span.size * span.size
        empty = {"start_ms": start, "late_ms": None, "fires": None, "within_1s": None}
        return found.setdefault(start, empty)

    for load in loads:
        for minute, late in load.late.items():
            at(minute)["late_ms"] = max(late, at(minute)["late_ms"] or 0)
        for hour, (fires, within) in load.fired.items():
            row = at(hour)
            row["fires"] = fires + (row["fires"] or 0)
            row["within_1s"] = within + (row["within_1s"] or 0)
    return [found[start] for start in sorted(found, reverse=True)]


def _zoomed(tenant: str, step: str, start: int, until: int) -> str:
    """Where a bar leads: to finer steps, at last to schedules; empty where there is no tenant."""
    finer = {"day": "hour", "hour": "minute"}.get(step)
    if finer is not None:
        return _address(tenant, finer, start, until)
    if not tenant:
        return ""
    asked = {"tenant": tenant, "due_from": start, "due_until": until}
    return "/console/schedules?" + urlencode(asked)


def _address(tenant: str, step: str, start: int, until: int) -> str:
    """The address of a span."""
    asked = {"tenant": tenant, "by": step, "from": start, "until": until}
    return "/console/timeline?" + urlencode({n: v for n, v in asked.items() if v != ""})


def _chart(bars: list[dict[str, Any]], past: list[dict[str, Any]], span: TimeRange) -> str:
    """The data that `page.js` draws: instants in seconds, due schedules, fires, lateness in ms."""
    due = {each["start_ms"]: each["pending"] for each in bars}
    fired = {each["start_ms"]: each["fires"] for each in past}
    late = {each["start_ms"]: each["late_ms"] for each in past}
    instants = range(span.start, span.until, span.size)
    rows = [
        [each / 1000 for each in instants],
        [due.get(each) for each in instants],
        [fired.get(each) for each in instants],
        [late.get(each) for each in instants],
    ]
    return orjson.dumps(rows).decode()


def _number(given: str | None) -> int | None:
    """An instant in an address, epoch ms; None for any other text."""
    try:
        return min(max(int(given or ""), 0), LAST_MS)
    except ValueError:
        return None
