"""``belfry doctor``: tenants whose events wait, as all workers together tell it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from belfry.cli.check import Check, Status
from belfry.cli.failures import CommandError
from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import plain

MOST: Final = 20
# What is done about a cause; the others pass by themselves, or are as they were asked for.
TO_DO: Final = {
    "output_topic": "create the topic, or let belfry do so (BELFRY_CREATE_TOPICS); belfry acls"
    " worker prints the rights it needs",
    "not_served": "give it a policy (belfry tenant set), or cancel what it has pending",
    "paused": "belfry tenant set TENANT paused=false, once it may go on",
    "rate": "nothing, if it is meant so; else belfry tenant set TENANT max_fires_per_second=…",
    "priority": "add workers, or belfry tenant set TENANT priority=0",
    "queue": "wait: it has more due than fires at once. belfry tenant top shows how it goes on",
    "ack_lock": "look whether its consumers run and acknowledge; belfry schedule locks TENANT names"
    " the fire, and belfry schedule ack acknowledges it by hand",
    "later_release": "update this worker",
}
BROKEN: Final = frozenset({"output_topic", "not_served", "later_release"})


def tenant_checks(session: Session) -> Iterator[Check]:
    """Whose events wait, why, since when and how many; all is well where none do."""
    try:
        found = Remote(session).get("/v1/tenants", waiting="true", sort="waiting", limit=MOST)
    except CommandError as error:
        yield Check("tenants", Status.SKIPPED, f"The worker does not tell: {error}")
        return
    yield from checks_of(found)


def checks_of(found: dict[str, Any]) -> Iterator[Check]:
    """What a worker's list of waiting tenants means."""
    waits = [each["wait"] for each in found.get("figures", ()) if each.get("wait")]
    for wait in waits:
        yield _check(wait)
    for name in found.get("silent", ()):
        yield Check("tenants", Status.SKIPPED, f"{name} does not answer: its tenants are not seen.")
    if not waits:
        yield Check("tenants", Status.OK, "No tenant's events wait for anything but their time.")


def _check(wait: dict[str, Any]) -> Check:
    cause = str(wait["cause"])
    tenant, reason = plain(wait["tenant"]), plain(wait["reason"])
    detail = f"{tenant} waits ({cause}) since {wait['since']}: {reason}."
    if wait["oldest_due_at"]:
        events = "event waits" if wait["waiting"] == 1 else "events wait"
        detail += f" {wait['waiting']} {events}, the oldest was due {wait['oldest_due_at']}."
    else:
        detail += " Nothing of it is due yet."
    status = Status.PROBLEM if cause in BROKEN else Status.RISK
    return Check("tenants", status, detail, TO_DO.get(cause, ""))
