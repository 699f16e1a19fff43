"""The internal token: it proves by a shared secret for which caller one worker asks another.

A forwarded request says on whose behalf it comes, when, and with which body, signed with the secret
that the workers share; the signature covers method, path and query too. It is checked before the
body is read, so that only workers can make a worker keep one. Without authentication there is no
secret either: then all workers are on one machine, and a caller that reaches one reaches all.

    belfry-forwarded   the claim in hex, a dot, HMAC-SHA256 of method, path, query and claim
    claim              ["orders", ["shop"], "schedule", 1796115600000, "<SHA-256 of the body>"]

A recorded header does not count for another path or body, nor after `FRESH_MS`, by the clocks of
the two workers. Rights are checked by the worker that was asked first; the other one believes the
claim and checks them again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from pydantic import Field, TypeAdapter
from starlette.requests import Request

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import ANYBODY, Principal, Role, forbidden, unauthorized
from belfry.wire.worker_keys import Keys

FORWARDED: Final = "belfry-forwarded"
# For so long a claim counts, before and after the clock of its reader.
FRESH_MS: Final = 30_000
# Name, tenants and role of the caller, when it was forwarded (epoch ms), and the body's SHA-256.
_CLAIM: Final = TypeAdapter(
    tuple[str, tuple[str, ...], Role, Annotated[int, Field(ge=0, le=2**53)], str]
)


@dataclass(frozen=True, slots=True)
class Target:
    """A question to another worker."""

    method: str
    path: str
    query: str
    body: bytes = b""

    @classmethod
    def without_body(cls, request: Request) -> Target:
        """The same that a caller asks this worker for, as far as its head says."""
        raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        return cls(request.method, raw.decode("ascii"), request.url.query)

    @classmethod
    async def of(cls, request: Request) -> Target:
        """The same that a caller asks this worker for."""
        return replace(cls.without_body(request), body=await request.body())

    def at(self, url: str) -> Target:
        """The same, asked of the worker with this address and of no other."""
        return replace(self, path=f"{url}{self.path}")

    def without(self, names: Collection[str]) -> Target:
        """The same without these parameters."""
        if not any(f"{name}=" in self.query for name in names):
            return self
        given = parse_qsl(self.query, keep_blank_values=True)
        return replace(self, query=urlencode([each for each in given if each[0] not in names]))

    def signed(self, secret: bytes, claim: str) -> str:
        """The signature of a claim on this target; the claim says which body."""
        parts = (self.method, self.path, self.query, claim)
        return hmac.new(secret, "\n".join(parts).encode(), sha256).hexdigest()


class ForwardedCaller(NamedTuple):
    """Another worker's claim on a request: its caller, and, if signed, its body."""

    principal: Principal
    body_sha256: str = ""

    def on(self, body: bytes) -> Principal:
        """The caller of a request with this body; raises `Problem`."""
        if self.body_sha256 and self.body_sha256 != sha256(body).hexdigest():
            raise unauthorized(f"The body is not the one that {FORWARDED} was signed for.")
        return self.principal


class InternalToken:
    """Signs the caller of a forwarded request, and reads claims that other workers signed."""

    def __init__(self, keys: Keys, gate: Gate, now_ms: Callable[[], float]) -> None:
        """The first of the keys signs, all of them verify; none without a shared secret."""
        self._keys = keys
        self._gate = gate
        self._now_ms = now_ms

    @property
    def signs(self) -> bool:
        """Whether forwarded requests are signed; an unsigned one may come from anybody."""
        return bool(self._keys)

    @property
    def can_travel(self) -> bool:
        """Whether other workers would believe this one."""
        return bool(self._keys) or self._gate.is_open

    def write(self, target: Target, principal: Principal) -> str:
        """The header of a forwarded request."""
        digest = sha256(target.body).hexdigest()
        now_ms = int(self._now_ms())
        said = (principal.name, principal.tenants, principal.role, now_ms, digest)
        claim = _CLAIM.dump_json(said).hex()
        signature = target.signed(self._keys[0], claim) if self._keys else ""
        return f"{claim}.{signature}"

    def read(self, given: str, target: Target) -> ForwardedCaller:
        """Another worker's claim on this target, for any body; raises `Problem`.

        401 is for a signature that is wrong or old, 403 for a worker that has no secret to check it
        with.
        """
        claim, _, signature = given.partition(".")
        if not self._keys:
            if not self._gate.is_open:
                raise forbidden("This worker has no BELFRY_HTTP_WORKER_SECRET, so it trusts none.")
            return ForwardedCaller(ANYBODY)
        # As bytes: of texts, only those in ASCII can be compared.
        given_bytes = signature.encode(errors="replace")
        if not any(
            hmac.compare_digest(target.signed(key, claim).encode(), given_bytes)
            for key in self._keys
        ):
            raise unauthorized(
                f"The signature of {FORWARDED} is wrong: give all workers the same"
                " BELFRY_HTTP_WORKER_SECRET; callers leave this header out."
            )
        return self._believed(claim)

    def _believed(self, claim: str) -> ForwardedCaller:
        """The claim, which was signed; raises `Problem` for one that is unreadable or too old."""
        try:
            name, tenants, role, at_ms, digest = _CLAIM.validate_json(bytes.fromhex(claim))
        except ValueError:
            raise unauthorized(
                f"{FORWARDED} says nothing that this worker understands: run the same version on"
                " all workers; callers leave this header out."
            ) from None
        if abs(self._now_ms() - at_ms) > FRESH_MS:
            raise unauthorized(f"{FORWARDED} is older than {FRESH_MS // 1000} s: check the clocks.")
        return ForwardedCaller(Principal(name, tenants, role), digest)
