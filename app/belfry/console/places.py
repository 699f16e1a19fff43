"""Tenants with their policies, and the cluster: workers, partitions, standbys."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from belfry.console.asking import Api, tenant_path
from belfry.console.page import Shown


async def tenants(api: Api, request: Request) -> Shown:
    """Tenants with their figures, those that wait, and one of them in full."""
    asked = request.query_params
    name = asked.get("tenant", "").strip()
    nothing = {"policy": None, "pending": None, "counted": True}
    one = await _one(api, name) if name else nothing
    cursor = asked.get("cursor") or None
    page = {} if cursor is None else {"cursor": cursor}
    listed = await api.get("/v1/tenants", limit=100, **page)
    waits = await api.get("/v1/tenants", limit=20, sort="waiting", waiting="true")
    return "tenants.html", {
        "me": await api.get("/v1/me"),
        "listed": listed,
        "waits": [each["wait"] for each in waits["figures"]],
        "tenant": name,
        **one,
    }


async def _one(api: Api, tenant: str) -> dict[str, Any]:
    policy = await api.found(tenant_path(tenant))
    page = await api.get(f"{tenant_path(tenant)}/counts")
    pending = sum(each["pending"] for each in page["counts"])
    return {"policy": policy, "pending": pending, "counted": page["cursor"] is None}


async def cluster(api: Api, _request: Request) -> Shown:
    """What the group of workers is and how it is."""
    return "cluster.html", {"me": await api.get("/v1/me"), "cluster": await api.get("/v1/cluster")}
