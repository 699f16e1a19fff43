"""The authenticator: an API key or a token stands for a caller.

A caller shows a bearer token: an API key of belfry's (`keys.py`) or a token of an OpenID provider
(`oidc.py`).  `principal.py` has the rights of a caller. If neither is configured, the port opens on
loopback only, and each caller that reaches it may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from belfry.api.auth.key_uses import KeyRow
from belfry.api.auth.principal import ANYBODY, Principal, unauthorized


class TokenVerifier(Protocol):
    """Knows one kind of token."""

    async def principal(self, token: str) -> Principal | None:
        """The caller that the token stands for; None if it is not of this kind.

        Raises `Problem` for one that is of this kind and not good.
        """


class Keys(Protocol):
    """A list of API keys that knows how each is used."""

    def used(self, principal: Principal, address: str) -> None:
        """A caller was admitted from this address."""

    def rows(self) -> list[KeyRow]:
        """All keys, with how each was used on this worker."""


class Gate:
    """Asks the verifiers in turn; without any, everybody may do everything."""

    def __init__(self, verifiers: Iterable[TokenVerifier] = (), keys: Keys | None = None) -> None:
        """`keys` are told of uses, and shown."""
        self._verifiers = tuple(verifiers)
        self._keys = keys

    @property
    def is_open(self) -> bool:
        """Whether callers need no key and no token."""
        return not self._verifiers

    def used(self, principal: Principal, address: str) -> None:
        """A caller was admitted from this address."""
        if self._keys is not None:
            self._keys.used(principal, address)

    def keys(self) -> list[KeyRow]:
        """All API keys; none where there is no list of them."""
        return [] if self._keys is None else self._keys.rows()

    async def admit(self, authorization: str | None) -> Principal:
        """The caller that an `Authorization` header stands for; raises `Problem`."""
        if self.is_open:
            return ANYBODY
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized("Show an API key or a token: `Authorization: Bearer …`.")
        for verifier in self._verifiers:
            found = await verifier.principal(token.strip())
            if found is not None:
                return found
        raise unauthorized("The token is not known here, or it has expired.")
