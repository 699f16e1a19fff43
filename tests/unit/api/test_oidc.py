"""Tokens of an OpenID provider: what its keys signed, for us, and in time, is believed."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm

from belfry.api.auth.oidc import Provider, Tokens
from belfry.api.auth.principal import Principal, Role
from belfry.api.problems import Problem

PRIVATE = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
LARGER = ec.generate_private_key(ec.SECP384R1())
RSA = rsa.generate_private_key(65537, 2048)
EDWARDS = ed25519.Ed25519PrivateKey.generate()
ISSUER = "https://id.example"


KEY_ID = "of this month"
SECRET = "a secret of thirty-two bytes, no less"
PUBLISHED = {**ECAlgorithm.to_jwk(PRIVATE.public_key(), as_dict=True), "kid": KEY_ID}


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Tokens:
    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", lambda _client: {"keys": [PUBLISHED]})
    return Tokens(Provider(ISSUER, "belfry", f"{ISSUER}/keys"))


def signed(given: dict[str, Any], key: Any = PRIVATE, alg: str = "ES256", **more: str) -> str:
    """A token that names the provider's key, whoever signs it."""
    return jwt.encode(given, key, alg, headers={"kid": KEY_ID, **more})


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
    token = signed(claims())
    assert await tokens.principal(token) == Principal("alice", ("orders", "pay.*"), Role.SCHEDULE)
    words = claims(belfry_tenants="a b", belfry_roles="operate")
    found = await tokens.principal(signed(words))
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
    await refused(tokens, signed(claims(**wrong)), 401)


@pytest.mark.parametrize("missing", ["exp", "aud", "iss", "sub"])
async def test_a_token_that_leaves_a_claim_out_is_refused(tokens: Tokens, missing: str) -> None:
    given = claims()
    del given[missing]
    await refused(tokens, signed(given), 401)


@pytest.mark.parametrize(
    ("key", "alg"),
    [
        (OTHER, "ES256"),
        (SECRET, "HS256"),
        (None, "none"),
        (RSA, "RS256"),
        (RSA, "PS256"),
        (LARGER, "ES384"),
        (EDWARDS, "EdDSA"),
    ],
)
async def test_other_signatures_are_refused(tokens: Tokens, key: Any, alg: str) -> None:
    await refused(tokens, signed(claims(), key, alg), 401)


async def test_what_names_no_published_key_is_refused(tokens: Tokens) -> None:
    await refused(tokens, signed(claims(), kid="of last year"), 401)
    await refused(tokens, jwt.encode(claims(), PRIVATE, "ES256"), 401)
    await refused(tokens, "a.b.c", 401)
    await refused(tokens, signed(claims()) + "!", 401)


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(), ValueError("no JSON")])
async def test_without_the_providers_keys_nobody_knows(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def unreachable(_client: object) -> None:
        raise error

    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", unreachable)
    problem = await refused(tokens, signed(claims()), 503)
    assert problem.headers == {"retry-after": "1"}


async def refused(tokens: Tokens, token: str, status: int) -> Problem:
    """How a token is refused."""
    with pytest.raises(Problem) as found:
        await tokens.principal(token)
    assert found.value.status == status
    return found.value


async def test_what_is_no_token_is_left_to_others(tokens: Tokens) -> None:
    assert await tokens.principal("belfry_key") is None
