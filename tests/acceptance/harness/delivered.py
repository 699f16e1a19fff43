"""How deliveries ended, by what the lifecycle topic says."""

from __future__ import annotations

from typing import Any

from tests.acceptance.harness.reading import lifecycle_of
from tests.acceptance.harness.site import Site, wait_for


def ends(site: Site, tenant: str) -> dict[str, list[dict[str, Any]]]:
    """How the deliveries of a tenant ended, by schedule."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in site.read(site.topic("lifecycle")):
        event = lifecycle_of(record)
        if event["tenant"] == tenant and event["outcome"] in ("DELIVERED", "FAILED"):
            found.setdefault(event["schedule_id"], []).append(event)
    return found


def wait_ends(site: Site, tenant: str, number: int) -> dict[str, list[dict[str, Any]]]:
    """Wait for so many ends of a tenant's deliveries."""

    def enough() -> dict[str, list[dict[str, Any]]]:
        found = ends(site, tenant)
        return found if sum(map(len, found.values())) >= number else {}

    return wait_for(f"{number} ends of {tenant}", enough, 40)
