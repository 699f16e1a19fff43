"""Tokens of an OpenID provider: what its keys signed, for us, and in time, is believed."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from belfry.api.access import Principal, Role
from belfry.api.oidc import Provider, Tokens
from belfry.api.problems import Problem

PRIVATE = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
LARGER = ec.generate_private_key(ec.SECP384R1())
RSA = rsa.generate_private_key(65537, 2048)
EDWARDS = ed25519.Ed25519PrivateKey.generate()
ISSUER = "https://id.example"


class Key:
    """The provider's public key, as the client of its key set hands it out."""

    key = PRIVATE.public_key()


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Tokens:
    def published(_client: object, _token: str) -> Key:
        return Key()

    monkeypatch.setattr(jwt.PyJWKClient, "get_signing_key_from_jwt", published)
    return Tokens(Provider(ISSUER, "belfry", f"{ISSUER}/keys"))


def claims(**more: Any) -> dict[str, Any]:
    """Claims that are believed, but for what a test changes."""
    return {
        "iss": ISSUER,
        "aud": "belfry",
        "sub": "alice",
        "exp": time.time() + 60,
        "belfry_tenants": ["orders", "pay.*"],
        "belfry_roles": ["read", "schedule", "unheard-of"],
        **more,
    }


async def test_a_good_token_binds_to_tenants_and_the_highest_role(tokens: Tokens) -> None:
    token = jwt.encode(claims(), PRIVATE, "ES256")
    assert await tokens.principal(token) == Principal("alice", ("orders", "pay.*"), Role.SCHEDULE)
    words = claims(belfry_tenants="a b", belfry_roles="operate")
    found = await tokens.principal(jwt.encode(words, PRIVATE, "ES256"))
    assert found == Principal("alice", ("a", "b"), Role.OPERATE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"exp": 1_000_000_000},
        {"belfry_roles": []},
        {"belfry_roles": ["root"]},
    ],
)
async def test_a_token_with_wrong_claims_is_refused(tokens: Tokens, wrong: dict[str, Any]) -> None:
    with pytest.raises(Problem) as refused:
        await tokens.principal(jwt.encode(claims(**wrong), PRIVATE, "ES256"))
    assert refused.value.status_code == 401


@pytest.mark.parametrize("missing", ["exp", "aud", "iss", "sub"])
async def test_a_token_that_leaves_a_claim_out_is_refused(tokens: Tokens, missing: str) -> None:
    given = claims()
    del given[missing]
    with pytest.raises(Problem):
        await tokens.principal(jwt.encode(given, PRIVATE, "ES256"))


async def test_other_signatures_are_refused(tokens: Tokens) -> None:
    shared = "a secret of thirty-two bytes, no less"
    unsigned: Any = None
    for token in (
        jwt.encode(claims(), OTHER, "ES256"),
        jwt.encode(claims(), shared, "HS256"),
        jwt.encode(claims(), unsigned, "none"),
        jwt.encode(claims(), RSA, "RS256"),
        jwt.encode(claims(), RSA, "PS256"),
        jwt.encode(claims(), LARGER, "ES384"),
        jwt.encode(claims(), EDWARDS, "EdDSA"),
        jwt.encode(claims(), PRIVATE, "ES256") + "!",
    ):
        with pytest.raises(Problem) as refused:
            await tokens.principal(token)
        assert refused.value.status_code == 401


async def test_what_is_no_token_is_left_to_others(tokens: Tokens) -> None:
    assert await tokens.principal("belfry_key") is None
