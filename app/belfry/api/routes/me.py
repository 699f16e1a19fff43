"""`/v1/me`: who the caller is, and what it may do.

For pages that leave out what would be refused; what is refused is still decided by each route.
"""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from belfry.api.auth.access import Principal, Role
from belfry.api.json.document import problems
from belfry.api.routes.callers import Callers


class MeAnswer(BaseModel):
    """The caller, as the worker knows it."""

    name: str
    role: Role
    tenants: list[str] = Field(description="Names, or beginnings of names followed by `*`.")


def me_routes(callers: Callers) -> APIRouter:
    """The route that tells callers who they are."""
    routes = APIRouter(prefix="/v1", tags=["access"])

    @routes.get("/me", responses=problems(429))
    async def me(caller: Principal = callers.who(Role.READ)) -> MeAnswer:
        """The name of the caller's key, its role, and the tenants that it is bound to."""
        return MeAnswer(name=caller.name, role=caller.role, tenants=list(caller.tenants))

    return routes
