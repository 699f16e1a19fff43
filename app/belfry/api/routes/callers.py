"""The caller of a request, as routes ask for it: admitted, allowed, and not too quick.

    forwarded by a worker?  ─ yes ─► its signature, before a body is read ─► the caller it names
        │ no
    too many bad tokens from this address?  ─ yes ─► 429
        │ no
    token ─► gate ─ not known ─► 401, counted for the address
        │ known
    its rate ─ used up ─► 429          role and tenant ─ not its own ─► 403

A route asks by a parameter, `caller: Principal = callers.who(Role.READ)`. Where the port is open,
callers are told apart by their addresses.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from belfry.api.auth.principal import Principal, Role, check
from belfry.api.auth.rates import FailedTokens, TokenBuckets
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.routes.repeated import each_once
from belfry.api.workers.internal_token import FORWARDED, Target
from belfry.api.workers.parts import ApiDependencies

BEARER: Final = HTTPBearer(
    auto_error=False,
    description="An API key, or a token of the OpenID provider; none where neither is configured.",
)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
# Bad tokens a second of one address, unless a setting says another number.
FAILURES: Final = 20.0


class Callers:
    """Makes the dependencies of routes."""

    def __init__(
        self, parts: ApiDependencies, per_second: float, failures_per_second: float = FAILURES
    ) -> None:
        """Calls a second of one caller, and refused tokens a second of one address."""
        self._parts = parts
        self._rate = TokenBuckets(per_second)
        self._failures = FailedTokens(failures_per_second)

    def who(self, role: Role) -> Principal:
        """A parameter's default: the caller, who has this role, for the tenant in the path."""

        async def admitted(request: Request, _bearer: Bearer) -> Principal:
            """FastAPI's dependency; the parameter shows the scheme of tokens in the document."""
            principal = await self.admit(request, role)
            each_once(request)
            return principal

        found: Principal = Depends(admitted)
        return found

    async def admit(self, request: Request, role: Role) -> Principal:
        """The caller, who has this role, for the tenant in the path; raises `Problem`."""
        try:
            principal = await self._known(request)
        except Problem as problem:
            if problem.status == HTTPStatus.UNAUTHORIZED:
                self._failures.failed(_address(request), self._parts.now_ms())
            raise
        note().comes_from(principal.name, str(principal.role))
        tenant = request.path_params.get("tenant")
        check(principal, role, None if tenant is None else unquote(tenant))
        return principal

    async def sees_all(self, request: Request) -> bool:
        """Whether the caller may get data on all tenants; it refuses no caller."""
        if not self._parts.gate.is_open and request.headers.get("authorization") is None:
            return False
        try:
            return (await self.admit(request, Role.READ)).reaches_all
        except Problem:
            return False

    def charge(self, request: Request, principal: Principal, calls: int) -> None:
        """Count the lines of one request as so many more calls of its caller.

        The request itself was counted when it was admitted. A caller may run into debt by it, and
        waits afterwards.
        """
        name, now_ms = self._name(request, principal), self._parts.now_ms()
        self._rate.charge(name, calls, now_ms, principal.per_second)

    async def _known(self, request: Request) -> Principal:
        """The caller, whether by another worker or by itself; raises `Problem`."""
        forwarded = request.headers.get(FORWARDED)
        if forwarded is not None:
            # The body of a caller that is not believed is not read.
            claim = self._parts.internal_token.read(forwarded, Target.without_body(request))
            if not self._parts.internal_token.signs:
                self._slow_down(request, claim.principal)
            principal = claim.on(await request.body())
            # Of a worker that is believed; an unsigned header may come from anybody.
            note().forwarded = self._parts.internal_token.signs
            return principal
        shown = request.headers.get("authorization")
        address = _address(request)
        wait_s = self._failures.wait_s(address, shown, self._parts.now_ms())
        if wait_s > 0:
            detail = f"{address} showed too many tokens that are not known here: wait."
            raise _too_quick(detail, "too_many_failures", wait_s)
        principal = await self._parts.gate.admit(shown)
        self._failures.worked(address, shown)
        self._parts.gate.used(principal, address)
        self._slow_down(request, principal)
        return principal

    def _name(self, request: Request, principal: Principal) -> str:
        """The key by which a caller's rate is counted."""
        return _address(request) if self._parts.gate.is_open else principal.name

    def _slow_down(self, request: Request, principal: Principal) -> None:
        """Take one call of the caller's rate; raises `Problem` if none is left."""
        note().comes_from(principal.name, str(principal.role))
        name = self._name(request, principal)
        wait_s = self._rate.take(name, self._parts.now_ms(), principal.per_second)
        if wait_s > 0:
            detail = (
                f"{name} asks more often than BELFRY_HTTP_REQUESTS_PER_SECOND or its key allows."
            )
            raise _too_quick(detail, "too_many_requests", wait_s)


def _address(request: Request) -> str:
    """The caller's address; behind a proxy that is believed, the one that the proxy names."""
    return request.client.host if request.client else ""


def _too_quick(detail: str, code: str, wait_s: float) -> Problem:
    """The problem of a caller who has to wait, with how long."""
    again = {"retry-after": str(max(1, round(wait_s)))}
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, code, again)
