"""How deliveries ended, by what the lifecycle topic says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.acceptance.harness.reading import Record, lifecycle_of
from tests.acceptance.harness.site import Site


def ends(records: Iterable[Record], tenant: str) -> dict[str, list[dict[str, Any]]]:
    """How the deliveries of a tenant ended, by schedule."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in map(lifecycle_of, records):
        if event["tenant"] == tenant and event["outcome"] in ("DELIVERED", "FAILED"):
            found.setdefault(event["schedule_id"], []).append(event)
    return found


def wait_ends(site: Site, tenant: str, number: int) -> dict[str, list[dict[str, Any]]]:
    """Wait for so many ends of a tenant's deliveries."""

    def enough(records: list[Record]) -> dict[str, list[dict[str, Any]]]:
        found = ends(records, tenant)
        return found if sum(map(len, found.values())) >= number else {}

    return site.wait_read(f"{number} ends of {tenant}", "lifecycle", enough, 40)
