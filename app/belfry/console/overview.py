"""The overview: pending schedules, fires, lateness, and problems with their cures.

It answers the first question of a user who opens the console: is anything wrong? Problems stand
above all figures, each with a sentence about what to do, and waiting tenants come first.

    what is shown                       where it comes from
    problems, overdue partitions        GET /v1/cluster: what every worker says of itself
    pending, fired, fires a second      the same, summed up
    lateness p50, p99                   the same, of the last minute, over all workers
    what went wrong lately              the same: take-overs after silence or a failure
    tenants, and why they wait          GET /v1/tenants?sort=waiting

Fires a second are the difference between two looks. Each look carries the count and the instant of
the one before in its address, so the worker keeps no state for a reader:

    12:00:00  /                               1 000 fired, no rate yet
    12:00:05  /?fired=1000&at=…12:00:00       1 500 fired: 100.0 a second

All questions go out together, and the page does not wait for late workers: one is shown as it
answered last, with the instant of that (`places.py`). A key that is bound to some tenants sees no
sums over all of them.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from time import time
from typing import Any, Final

from starlette.requests import Request

from belfry.console.asking import Api, ApiRefusal
from belfry.console.page import Shown
from belfry.console.places import CAUSES, late_workers, with_shares
from belfry.console.words import duration, epoch_ms, quantile_ms

LONGEST_LOOK_MS: Final = 120_000
MOST_TENANTS: Final = 20
# Causes of take-overs that are no matter of course, and how many of them are shown, of a day.
TROUBLE: Final = ("owner_silent", "owner_gone", "started_over")
MOST_TROUBLE: Final = 5
DAY_MS: Final = 86_400_000
# The cure by the cause for which a partition's oldest schedule waits.
ADVICE: Final = {
    "firing": "It is due and has not fired: look at the partition's state in the cluster.",
    "tenant_queue": "Its tenant fires as fast as its policy allows: raise max_fires_per_second,"
    " or wait.",
    "tenant_blocked": "Its tenant is paused, or its topic is missing or refuses events: look at"
    " the tenant's policy and topic.",
    "catch_up": "It catches up with late occurrences: wait.",
    "ack_lock": "An acknowledgement is missing: open the schedule and acknowledge its fire.",
    "later_release": "It needs a later release: update this worker.",
    "day_file": "Its payload lies in a day file that cannot be read: look at the store of"
    " BELFRY_DAY_STORE.",
}
# The same for a tenant whose due events wait until somebody acts, by the cause.
UNTIL_SOMEBODY: Final = {
    "output_topic": "Create its output topic, or let belfry write to it: belfry doctor says which.",
    "paused": "Resume it: belfry tenant set TENANT paused=false.",
    "not_served": "Give it a policy: belfry tenant set TENANT.",
    "ack_lock": "Acknowledge the fire that is waited for: belfry schedule locks TENANT lists it.",
    "later_release": ADVICE["later_release"],
    "day_file": ADVICE["day_file"],
}


async def view(api: Api, request: Request) -> Shown:
    """The overview."""
    # The question for the caller comes first, so that a wrong key counts once.
    me = await api.get("/v1/me")
    full = "*" in me["tenants"]
    asked = api.get("/v1/cluster", at_once="true"), _tenants(api)
    cluster, tenants = await asyncio.gather(*asked)
    now_ms = round(time() * 1000)
    workers = cluster["workers"]
    partitions = [each for worker in workers for each in worker["partitions"]]
    fired = sum(worker["fired"] or 0 for worker in workers)
    overdue = _overdue(partitions, now_ms)
    waits = [{**each["wait"], "do": _advice(each["wait"])} for each in tenants if each["wait"]]
    return "overview.html", {
        "me": me,
        "full": full,
        "cluster": cluster,
        "pending": sum(worker["pending"] or 0 for worker in workers),
        "fired": fired,
        "rate": _rate(request, fired, now_ms),
        "lateness": _lateness(workers),
        "lately": _lately(workers, now_ms),
        "late_workers": late_workers(cluster, now_ms),
        "overdue": overdue,
        "waits": waits,
        "blocked": [each for each in waits if each["waiting_for"] == "tenant_blocked"],
        "partitions": len(partitions),
        "standbys": _standbys(cluster),
        "unguarded": _unguarded(cluster),
        "problems": _problems(cluster, overdue),
        "tenants": tenants,
        "names": sorted(
            {each["tenant"] for each in tenants} | {n for n in me["tenants"] if "*" not in n}
        ),
        "again": f"/?fired={fired}&at={now_ms}",
    }


def _advice(wait: dict[str, Any]) -> str:
    """The action that ends the wait of a tenant; empty if time ends it."""
    return UNTIL_SOMEBODY.get(wait["cause"], "").replace("TENANT", wait["tenant"])


def _rate(request: Request, fired: int, now_ms: int) -> float | None:
    """Fires a second since the look before; None for the first look."""
    try:
        before, at_ms = int(request.query_params["fired"]), int(request.query_params["at"])
    except (KeyError, ValueError):
        return None
    passed_ms = now_ms - at_ms
    if not 0 < passed_ms <= LONGEST_LOOK_MS or fired < before:
        return None
    return (fired - before) * 1000 / passed_ms


def _lateness(workers: list[dict[str, Any]]) -> dict[str, float | None]:
    """Bounds in ms of the lateness that half of all fires, and 99 of 100, kept within lately.

    `over` is how long ago that begins, in ms. Counts of workers with the same bounds are added up;
    one of another release may have others, or tell none. Workers tell nobody who is bound to some
    tenants, so all are None then.
    """
    told = [worker["lateness"] for worker in workers if worker.get("lateness")]
    same = [each for each in told if each["bounds_seconds"] == told[0]["bounds_seconds"]]
    if not same:
        return {"p50": None, "p99": None, "over": None}
    counts = map(sum, zip(*(each["counts"] for each in same), strict=True))
    bounds = [*same[0]["bounds_seconds"], float("inf")]
    buckets = list(zip(bounds, counts, strict=True))
    over = 1000 * max(each["seconds"] for each in same)
    return {"p50": quantile_ms(buckets, 0.5), "p99": quantile_ms(buckets, 0.99), "over": over}


def _lately(workers: list[dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
    """The last take-overs of a day that somebody may want to look into, the latest first."""
    found = [
        {**each, "to": worker["worker_id"], "why": CAUSES[each["cause"]]}
        for worker in workers
        for each in worker.get("take_overs", ())
        if each["cause"] in TROUBLE and now_ms - epoch_ms(each["at"]) < DAY_MS
    ]
    return sorted(found, key=lambda each: str(each["at"]), reverse=True)[:MOST_TROUBLE]


def _overdue(partitions: list[dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
    """Partitions whose oldest due instant is over by more than a second."""
    return [
        {**each, "late_ms": now_ms - epoch_ms(each["oldest_due_at"])}
        for each in partitions
        if each["oldest_due_at"] and now_ms - epoch_ms(each["oldest_due_at"]) > 1000
    ]


def _standbys(cluster: dict[str, Any]) -> int:
    """How many partitions are stood by for, over all workers."""
    return sum(len(member["stands_by"]) for member in cluster["members"])


def _problems(cluster: dict[str, Any], overdue: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The problems of the cluster, kind by kind, each with its cure."""
    found = [
        {"what": f"{worker['worker_id']}: {problem}", "do": "Look at its log; see the cluster."}
        for worker in cluster["workers"]
        for problem in worker["problems"]
    ]
    found += [
        {
            "what": f"{worker['worker_id']} holds back firing: its clock cannot be trusted.",
            "do": "Set the machine's clock by NTP; belfry doctor tells the difference.",
        }
        for worker in cluster["workers"]
        if worker["firing_paused"]
    ]
    found += [
        {
            "what": f"Partition {each['partition']} does not fire: {each['missing']}.",
            "do": "A recovery that reads needs time; anything else is in the log of its worker.",
        }
        for worker in cluster["workers"]
        for each in worker["partitions"]
        if each["missing"]
    ]
    found += [
        {
            "what": f"{name} does not answer.",
            "do": "What it owns is missing here. See whether its process runs and its advertised"
            " address can be reached.",
        }
        for name in cluster["silent"]
        if name not in {each["worker_id"] for each in cluster["remembered"]}
    ]
    found += [
        {"what": f"{worker['worker_id']}: {warning}.", "do": "Its runbook says more."}
        for worker in cluster["workers"]
        for warning in worker.get("warnings", ())
    ]
    found += [
        {
            "what": f"Partition {each['partition']} is late by {duration(each['late_ms'])}.",
            "do": ADVICE.get(each["waiting_for"] or "", "Look at the cluster."),
        }
        for each in overdue
    ]
    return found


def _unguarded(cluster: dict[str, Any]) -> str:
    """The warning on partitions without a standby, as the group has told last; or empty."""
    members = cluster["members"]
    owned = {number for member in members for number in member["owns"]}
    without = owned - {number for member in members for number in member["stands_by"]}
    if not without:
        return ""
    alone = "There is one worker" if len(members) == 1 else f"There are {len(members)} workers"
    return (
        f"{alone}, and nobody stands by for {len(without)} of {len(owned)} partitions: when their"
        " owner ends, their events are late."
    )


async def _tenants(api: Api) -> list[dict[str, Any]]:
    """Some tenants with their figures, those whose events wait before all others."""
    try:
        asked = {"limit": MOST_TENANTS, "sort": "waiting", "at_once": "true"}
        told = await api.get("/v1/tenants", **asked)
    except ApiRefusal as refused:
        # A worker that starts has not read the policies; its problems are shown all the same.
        if refused.status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return []
    return with_shares(told["figures"])
