"""Tokens for a broker that asks for OAUTHBEARER: fetched as librdkafka's OIDC method does.

The client credentials grant (RFC 6749, section 4.4): client id and secret by HTTP Basic, the scope
in the form. A token is used for four fifths of its life, and then another one is fetched.

    12:00:00  a connection asks for a token ─► POST to the provider ─► a token that lives for 300 s
    12:03:00  another connection            ─► the same token
    12:04:01  a connection that is renewed  ─► 240 s are over ─► POST ─► the next one

librdkafka's clients fetch their own tokens; this is for the group's client, on its event loop. A
provider that does not answer fails that connection, which the client tries again.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
import orjson
from aiokafka.abc import AbstractTokenProvider

from belfry.host import machine
from belfry.host.errors import named

# Seconds for the provider to answer.
FETCH_S: Final = 10.0
# Seconds, for a provider that does not say how long its tokens live.
UNTOLD_S: Final = 60.0
# The part of a token's life in which it is used: clocks differ, and requests take time.
USED: Final = 0.8
_PREFIX: Final = "sasl.oauthbearer."
_NEEDED: Final = ("token.endpoint.url", "client.id", "client.secret")


class BadOAuth(ValueError):
    """Properties of OAUTHBEARER that cannot fetch a token; the message says why."""


class OidcTokens(AbstractTokenProvider):  # type: ignore[misc]  # it ships no types
    """Tokens of one client at one provider.

    `token` is awaited on the loop of the client, and asks again only when the token is used up.
    """

    def __init__(
        self, url: str, credentials: tuple[str, str], form: Mapping[str, str], said: dict[str, str]
    ) -> None:
        """`form` goes to the provider beside the grant, `said` to the broker beside the token."""
        self._url = url
        self._credentials = credentials
        self._form = {"grant_type": "client_credentials", **form}
        self._said = said
        self.trusted: ssl.SSLContext | None = None
        self.clock: Callable[[], float] = machine.monotonic
        self._token = ""
        self._until = 0.0

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> OidcTokens:
        """A provider as these librdkafka properties say; raises `BadOAuth`."""
        given = {
            name.removeprefix(_PREFIX): str(value)
            for name, value in properties.items()
            if name.startswith(_PREFIX)
        }
        if given.get("method", "default").lower() != "oidc":
            raise BadOAuth(
                "sasl.mechanism is OAUTHBEARER: set sasl.oauthbearer.method=oidc with"
                f" {', '.join(_PREFIX + name for name in _NEEDED)}. No other method has a"
                " counterpart in the client that keeps the group's membership."
            )
        grant = given.get("grant.type", "client_credentials")
        if grant != "client_credentials":
            raise BadOAuth(
                f"sasl.oauthbearer.grant.type is {grant}: client_credentials is allowed."
            )
        absent = [_PREFIX + name for name in _NEEDED if not given.get(name)]
        if absent:
            raise BadOAuth(f"sasl.mechanism is OAUTHBEARER, and {', '.join(absent)} is not set.")
        url = given["token.endpoint.url"]
        if not url.startswith(("https://", "http://")):
            raise BadOAuth("sasl.oauthbearer.token.endpoint.url is no http:// or https:// address.")
        form = {"scope": given["scope"]} if given.get("scope") else {}
        tokens = cls(
            url, (given["client.id"], given["client.secret"]), form, _pairs(given.get("extensions"))
        )
        tokens.trusted = _trusted(properties)
        return tokens

    async def token(self) -> str:
        """A valid token; raises ConnectionError if the provider gives none.

        aiokafka awaits this for each connection that it opens, and logs in with the token.
        """
        if self.clock() >= self._until:
            await self._fetch()
        return self._token

    def extensions(self) -> dict[str, str]:
        """The values that the broker gets beside the token."""
        return self._said

    async def _fetch(self) -> None:
        """Get another token; raises ConnectionError, which shows no part of the answer."""
        # Its life counts from the request: the answer may have been on its way for seconds.
        asked = self.clock()
        try:
            found = await self._ask()
            token, lives_s = found["access_token"], float(found.get("expires_in", UNTOLD_S))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ConnectionError(f"{self._url} gave no token for Kafka: {named(error)}") from None
        except (ValueError, TypeError, KeyError):
            # The error may hold a token, so it is not shown.
            raise ConnectionError(
                f"{self._url} gave no token for Kafka: its answer holds no access_token"
            ) from None
        self._token, self._until = str(token), asked + USED * lives_s

    async def _ask(self) -> Any:
        """The provider's answer as JSON; the secret never follows a redirect."""
        waiting = aiohttp.ClientTimeout(total=FETCH_S)
        login = b64encode(":".join(self._credentials).encode()).decode()
        async with (
            aiohttp.ClientSession(timeout=waiting) as session,
            session.post(
                self._url,
                data=self._form,
                headers={"authorization": f"Basic {login}"},
                ssl=self.trusted if self.trusted is not None else True,
                allow_redirects=False,
            ) as answer,
        ):
            text = await answer.read()
            if not answer.ok:
                raise ConnectionError(f"status {answer.status}")
            return orjson.loads(text)


def _pairs(text: str | None) -> dict[str, str]:
    """``a=1,b=2`` as a dictionary, as librdkafka reads extensions (RFC 7628)."""
    pairs = (each.partition("=") for each in (text or "").split(",") if each)
    return {name.strip(): value for name, _, value in pairs}


def _trusted(properties: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The trusted authorities for the provider; None for those of the machine."""
    place, text = properties.get("https.ca.location"), properties.get("https.ca.pem")
    if not place and not text:
        return None
    try:
        return ssl.create_default_context(
            cafile=None if text else str(place), cadata=str(text) if text else None
        )
    except OSError as error:
        raise BadOAuth(f"https.ca.location or https.ca.pem cannot be used: {error}.") from None
