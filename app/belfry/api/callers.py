"""The caller of a request, as routes ask for it: admitted, allowed, and not too quick."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from belfry.api.access import Principal, Role, check
from belfry.api.parts import Parts
from belfry.api.peers import FORWARDED, Target
from belfry.api.problems import Problem

BEARER: Final = HTTPBearer(
    auto_error=False,
    description="An API key, or a token of the OpenID provider; none where neither is configured.",
)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
Admit = Callable[[Request, HTTPAuthorizationCredentials | None], Awaitable[Principal]]


class Rate:
    """A bucket of tokens for each caller: `per_second` flow in, a second's worth is kept."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now_ms: float) -> float:
        """Take a token; returns the seconds to wait where there is none, else 0."""
        left, then_ms = self._left.get(name, (self._per_second, now_ms))
        left = min(self._per_second, left + max(0.0, now_ms - then_ms) * self._per_second / 1000)
        if left < 1:
            return (1 - left) / self._per_second
        self._left[name] = (left - 1, now_ms)
        if len(self._left) > 10_000:
            self._left = {name: self._left[name]}
        return 0.0


class Callers:
    """Makes the dependencies of routes."""

    def __init__(self, parts: Parts, per_second: float) -> None:
        self._parts = parts
        self._rate = Rate(per_second)

    def who(self, role: Role) -> Principal:
        """A parameter's default: the caller, who has this role, for the tenant in the path."""

        async def admitted(request: Request, _bearer: Bearer) -> Principal:
            return await self.admit(request, role)

        found: Principal = Depends(admitted)
        return found

    async def admit(self, request: Request, role: Role) -> Principal:
        """The caller, who has this role, for the tenant in the path; raises `Problem`."""
        forwarded = request.headers.get(FORWARDED)
        if forwarded is not None:
            # Whoever is not believed makes nobody read a body.
            claim = self._parts.passport.read(forwarded, Target.without_body(request))
            principal = claim.on(await request.body())
        else:
            principal = await self._parts.gate.admit(request.headers.get("authorization"))
            self._slow_down(principal, request)
        tenant = request.path_params.get("tenant")
        check(principal, role, None if tenant is None else unquote(tenant))
        return principal

    def _slow_down(self, principal: Principal, request: Request) -> None:
        client = request.client.host if request.client else ""
        name = client if self._parts.gate.is_open else principal.name
        wait_s = self._rate.take(name, self._parts.now_ms())
        if wait_s > 0:
            detail = f"{name} asks more often than BELFRY_HTTP_REQUESTS_PER_SECOND allows."
            again = {"retry-after": str(max(1, round(wait_s)))}
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, "too_many_requests", again)
