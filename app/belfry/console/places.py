"""Tenants with their figures and policies, and the cluster: workers, partitions, standbys.

*Tenants* shows the usage of tenants and those that wait: one page of `GET /v1/tenants` in the
chosen order, and above it in any order the tenants whose events wait. A named tenant is shown in
full, with its policy and how much of its quota it uses. Shares are computed here, from the fires of
the listed tenants; the API tells all other figures.

*Cluster* shows `GET /v1/cluster` as it is, and the take-overs that its workers remember as one
list. Every worker answers for itself, so one that does not is named instead of left out.

No view waits for a worker that is late (`at_once`): it is shown as it answered last, and says so.
"""

from __future__ import annotations

import asyncio
from time import time
from typing import Any, Final

from starlette.requests import Request

from belfry.console.asking import Api, tenant_path
from belfry.console.page import Shown
from belfry.console.policies import SETTING
from belfry.console.words import epoch_ms

# The sort keys of a list of tenants, and their names.
ORDERS: Final = {
    "name": "name",
    "waiting": "who waits",
    "pending": "most pending",
    "fired": "most fired",
    "rejected": "most refused",
    "lateness": "most lateness",
}
NOTHING: Final[dict[str, Any]] = {"policy": None, "etag": "", "pending": None, "counted": True}
PAGE: Final = 50
MOST_MOVES: Final = 50
# Why a partition changed hands.
CAUSES: Final = {
    "owner_silent": "Its owner was silent: a standby took it over ahead of the group.",
    "owner_gone": "Its owner is not in the group any more.",
    "owner_leaving": "Its owner stops, or is unfit.",
    "moved": "The group has levelled the shares of its workers.",
    "started_over": "The same worker began anew, after a failure: its log says which.",
    "no_owner_known": "It had no owner that this worker knows of: workers were started.",
}


async def tenants(api: Api, request: Request) -> Shown:
    """Tenants with their figures, the waiting ones, and one of them in full."""
    asked = request.query_params
    name = asked.get("tenant", "").strip()
    order = asked.get("sort", "name")
    order = order if order in ORDERS else "name"
    cursor = asked.get("cursor") or None
    page = {} if cursor is None else {"cursor": cursor}
    me = await api.get("/v1/me")
    at_once = {"at_once": "true"}
    one, listed, waits = await asyncio.gather(
        _one(api, name) if name else _nobody(),
        api.get("/v1/tenants", limit=PAGE, sort=order, **page, **at_once),
        api.get("/v1/tenants", limit=20, sort="waiting", waiting="true", **at_once),
    )
    return "tenants.html", {
        "me": me,
        "may_set": me["role"] in SETTING,
        "listed": listed,
        "late_workers": late_workers(listed, round(time() * 1000)),
        "figures": with_shares(listed["figures"]),
        "orders": ORDERS,
        "order": order,
        "waits": [each["wait"] for each in waits["figures"]],
        "tenant": name,
        **one,
    }


def with_shares(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tenants with their share of what those fired, in percent, and their mean lateness in ms."""
    total = sum(each["fired"] for each in figures)
    return [
        {
            **each,
            "share": 100 * each["fired"] / total if total else None,
            "late_ms": 1000 * each["late_seconds"] / each["fired"] if each["fired"] else None,
        }
        for each in figures
    ]


async def _nobody() -> dict[str, Any]:
    """The part of the page in full if no tenant is named."""
    return NOTHING


async def _one(api: Api, tenant: str) -> dict[str, Any]:
    """Policy, ETag and pending schedules of one tenant; the first page of counts is added up."""
    answer = await api.ask("GET", tenant_path(tenant), {})
    policy = None if answer.status == 404 else answer.json()
    page = await api.get(f"{tenant_path(tenant)}/counts")
    pending = sum(each["pending"] for each in page["counts"])
    return {
        "policy": policy,
        "etag": answer.headers.get("etag", ""),
        "pending": pending,
        "counted": page["cursor"] is None,
    }


async def cluster(api: Api, _request: Request) -> Shown:
    """The group of workers and its state."""
    me, found = await api.get("/v1/me"), await api.get("/v1/cluster", at_once="true")
    late = late_workers(found, round(time() * 1000))
    shown = {"me": me, "cluster": found, "moves": _moves(found), "late_workers": late}
    return "cluster.html", shown


def late_workers(told: dict[str, Any], now_ms: int) -> list[dict[str, Any]]:
    """Workers that did not answer in time; `at` and `age_ms` where an answer from before is shown.

    Both are None for a worker of which nothing is shown.
    """
    at = {each["worker_id"]: each["at"] for each in told["remembered"]}
    return [
        {
            "name": name,
            "at": at.get(name),
            "age_ms": max(0, now_ms - epoch_ms(at[name])) if name in at else None,
        }
        for name in told["silent"]
    ]


def _moves(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """The last take-overs of all workers, the latest first, each with its cause in words."""
    found = [
        {**each, "to": worker["worker_id"], "why": CAUSES.get(each["cause"], each["cause"])}
        for worker in cluster["workers"]
        for each in worker.get("take_overs", ())
    ]
    return sorted(found, key=lambda each: str(each["at"]), reverse=True)[:MOST_MOVES]
