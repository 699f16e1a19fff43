"""Tokens of an OpenID provider: signed JWTs, checked against the keys that it publishes.

Only signatures by key pairs are taken: a shared secret, or none, would let anybody who knows the
public key sign.  Issuer, audience and expiry have to fit.  Two claims say what the bearer may do:
a list of tenants (each a name, or a beginning and ``*``) and a list of roles.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import jwt
import orjson
import structlog

from belfry.api.access import Principal, Role, unauthorized

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_S: Final = 30
FETCH_S: Final = 5
KEYS_S: Final = 300

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Provider:
    """An issuer, whom its tokens are for, where its keys lie, and the claims that bind."""

    issuer: str
    audience: str
    jwks_url: str | None = None
    tenants_claim: str = "belfry_tenants"
    roles_claim: str = "belfry_roles"


class Tokens:
    """Verifies tokens of one provider; its keys are fetched when first needed, and kept."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._keys: jwt.PyJWKClient | None = None
        self._lock = asyncio.Lock()

    async def principal(self, token: str) -> Principal | None:
        """Who a token stands for; None for what is no JWT, `Problem` for a bad one."""
        if token.count(".") != 2:
            return None
        try:
            key = await asyncio.to_thread(self._key_of, token)
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._provider.audience,
                issuer=self._provider.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            log.warning("the provider's keys cannot be fetched", reason=str(error))
            raise unauthorized("The provider's keys cannot be fetched now; try again.") from None
        except jwt.PyJWTError as error:
            raise unauthorized(f"The token is not good: {error}.") from None
        except (TypeError, ValueError):
            # What PyJWT says of a key of another kind, such as an elliptic curve's for RS256.
            detail = "The token is not good: its alg is not one of the key that it names."
            raise unauthorized(detail) from None
        return self._bound(claims)

    def _key_of(self, token: str) -> Any:
        if self._keys is None:
            url = self._provider.jwks_url or _discovered(self._provider.issuer)
            self._keys = jwt.PyJWKClient(url, lifespan=KEYS_S, timeout=FETCH_S)
        return self._keys.get_signing_key_from_jwt(token).key

    def _bound(self, claims: dict[str, Any]) -> Principal:
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


def _discovered(issuer: str) -> str:
    """Where an issuer's discovery document says that its keys lie."""
    from urllib.request import urlopen

    address = issuer.rstrip("/") + "/.well-known/openid-configuration"
    try:
        with urlopen(address, timeout=FETCH_S) as answer:  # noqa: S310  (an operator's setting)
            return str(orjson.loads(answer.read())["jwks_uri"])
    except (OSError, KeyError, ValueError) as error:
        raise jwt.PyJWKClientConnectionError(f"{address}: {error}") from error
