"""`belfry doctor`: quotas that are used up, of brokers for belfry and of belfry for its tenants.

A broker that has a quota for a user or a client id answers at once, and says how long the client is
to be quiet: belfry is late then, and nothing is wrong anywhere.  Workers count that time.  A tenant
whose `max_pending` is reached has its next schedules refused, while its accepted schedules go on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from belfry.cli.check import Check, Status
from belfry.cli.failures import CommandError
from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import plain

NAME: Final = "quotas"
THROTTLED: Final = "belfry_client_throttled_seconds_total"
# Brokers may hold a client back for some milliseconds while it starts.
TOLERATED_S: Final = 1.0
# Tenants that are looked at: those that were refused most.
MOST: Final = 20


def throttled_checks(metrics: str, servers: str) -> Iterator[Check]:
    """Whether brokers hold the Kafka clients of a worker back, as its page of metrics tells.

    `servers` go into the command that shows the quotas.
    """
    seconds = throttled(metrics)
    if sum(seconds.values()) < TOLERATED_S:
        return
    longest = sorted(seconds, key=seconds.__getitem__, reverse=True)
    told = ", ".join(f"{each} for {seconds[each]:.1f} s" for each in longest if seconds[each])
    yield Check(
        NAME,
        Status.RISK,
        f"A quota of the brokers has held the worker's Kafka clients back since its start: {told}.",
        "give the workers' user or client id a larger quota, or none: kafka-configs.sh"
        f" --bootstrap-server {servers} --describe --entity-type users --entity-type clients shows"
        " what there is. BelfryThrottled tells whether it goes on",
    )


def throttled(metrics: str) -> dict[str, float]:
    """Seconds for which clients were held back, by the purpose of the client."""
    found: defaultdict[str, float] = defaultdict(float)
    for line in metrics.splitlines():
        if line.startswith(f"{THROTTLED}{{"):
            found[line.partition('client="')[2].partition('"')[0]] += float(line.split()[-1])
    return found


def quota_checks(session: Session) -> Iterator[Check]:
    """Tenants whose requests are refused because as many of their schedules wait as may."""
    remote = Remote(session)
    try:
        listed = remote.get("/v1/tenants", sort="rejected", limit=MOST)
        for each in listed.get("figures", ()):
            if each["rejected"] and each["has_policy"]:
                policy = remote.get(f"/v1/tenants/{quote(each['tenant'], safe='')}")
                yield from used_up(each, policy)
    except CommandError as error:
        yield Check(NAME, Status.SKIPPED, f"The worker does not tell: {error}")


def used_up(figures: Mapping[str, Any], policy: Mapping[str, Any]) -> Iterator[Check]:
    """What a tenant's figures say beside its policy."""
    most, pending = policy["max_pending"], figures["pending"]
    if most is None or pending < most:
        return
    tenant, refused = plain(figures["tenant"]), figures["rejected"]
    yield Check(
        NAME,
        Status.RISK,
        f"{tenant} has used up its quota: {pending} of its schedules wait, and max_pending is"
        f" {most}; {refused} of its requests were refused since its partitions were taken over.",
        f"belfry tenant set {tenant} max_pending=…, or have it cancel some; belfry redrive rejected"
        f" {tenant} sends refused requests again",
    )
