"""Tokens of an OpenID provider: signed JWTs, checked against the keys that it publishes.

Only signatures by key pairs are taken: a shared secret, or none, would let anybody who knows the
public key sign. Issuer, audience and expiry have to fit. Two claims say what the bearer may do: a
list of tenants (each a name, or a beginning and ``*``) and a list of roles.

    {"iss": "https://id.example.com", "aud": "belfry", "sub": "orders-service", "exp": 1796119200,
     "belfry_tenants": ["orders"], "belfry_roles": ["schedule"]}

Of several roles the highest counts. JWT is RFC 7519, its signatures RFC 7515, published keys RFC
7517, and what to beware of RFC 8725. No token is kept: each call checks its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import jwt

from belfry.api.auth.principal import Principal, Role, unauthorized
from belfry.api.auth.provider_keys import KeysUnavailable, ProviderKeys, published
from belfry.api.problems import Problem

# Signatures by key pairs alone; a token cannot choose another kind.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA")
# Seconds by which the clocks of provider and worker may differ.
LEEWAY_S: Final = 30


@dataclass(frozen=True, slots=True)
class Provider:
    """An issuer, the audience of its tokens, the place of its keys, and the claims that bind."""

    issuer: str
    audience: str
    jwks_url: str | None = None
    tenants_claim: str = "belfry_tenants"
    roles_claim: str = "belfry_roles"


class Tokens:
    """Verifies tokens of one provider, whose keys are fetched when they are needed, and kept."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._keys = ProviderKeys(partial(published, provider.issuer, provider.jwks_url))

    async def principal(self, token: str) -> Principal | None:
        """The caller that a token stands for; None if the token is not a JWT.

        Raises `Problem` for a bad one, and where the provider's keys cannot be fetched.
        """
        if token.count(".") != 2:
            return None
        try:
            claims = jwt.decode(
                token,
                await self._key_of(token),
                algorithms=list(ALGORITHMS),
                audience=self._provider.audience,
                issuer=self._provider.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise unauthorized(f"The token is not good: {error}.") from None
        except (TypeError, ValueError):
            # The error of PyJWT for a key of another kind, such as an elliptic curve's for RS256.
            detail = "The token is not good: its alg is not one of the key that it names."
            raise unauthorized(detail) from None
        return self._bound(claims)

    async def _key_of(self, token: str) -> Any:
        """The published key that a token names; raises `Problem` if there is no such key."""
        key_id = jwt.get_unverified_header(token).get("kid")
        try:
            key = await self._keys.key(key_id) if key_id else None
        except KeysUnavailable:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The provider's keys cannot be fetched now, so nobody knows whether the token is"
                " good: try again.",
                "provider_unreachable",
                {"retry-after": "1"},
            ) from None
        if key is None:
            detail = "The token is not good: its kid names none of the keys that are published."
            raise unauthorized(detail)
        return key.key

    def _bound(self, claims: dict[str, Any]) -> Principal:
        """The caller that the claims of a good token stand for; raises `Problem` without a role."""
        tenants = _texts(claims.get(self._provider.tenants_claim))
        roles = [
            Role(text) for text in _texts(claims.get(self._provider.roles_claim)) if text in _ROLES
        ]
        if not roles:
            raise unauthorized(
                f"The token's claim {self._provider.roles_claim} names no role: {', '.join(Role)}."
            )
        highest = max(roles, key=list(Role).index)
        return Principal(str(claims["sub"])[:100], tuple(tenants), highest)


_ROLES: Final = frozenset(str(role) for role in Role)


def _texts(claim: Any) -> list[str]:
    """A claim as a list: providers write lists, or words with spaces between."""
    if isinstance(claim, str):
        return claim.split()
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list) else []
