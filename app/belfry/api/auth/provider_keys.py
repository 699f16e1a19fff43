"""The keys that an OpenID provider publishes: fetched when they are needed, and kept for minutes.

    id of a key ─ kept ───────► the key, at once
        │ not kept, or too old
        └─► fetch, in a thread of its own, once for all waiting callers
              ├─ it is there ─► the key
              ├─ it is not ───► none; not fetched again for half a minute, for no caller and no id
              └─ no answer ───► `KeysUnavailable`; not fetched again for a second

A caller that shows a token names an id, so unknown ids must neither cause calls to the provider
over and over nor hold up callers with known keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from time import monotonic
from typing import Final
from urllib.request import urlopen

import jwt
import orjson
import structlog

# Seconds for the provider to answer, and for which its keys are kept.
FETCH_S: Final = 5
KEPT_S: Final = 300.0
# Seconds without another fetch: after an answer, and after none.
KNOWN_S: Final = 30.0
PAUSE_S: Final = 1.0

Keys = Mapping[str, jwt.PyJWK]

log = structlog.get_logger(__name__)


class KeysUnavailable(Exception):
    """The provider's keys cannot be fetched, so a token can be called neither good nor bad."""


class ProviderKeys:
    """The keys of one provider; belongs to one event loop."""

    def __init__(self, fetch: Callable[[], Keys], now_s: Callable[[], float] = monotonic) -> None:
        """`fetch` blocks, and returns the keys that are published by their ids.

        It raises `KeysUnavailable`.
        """
        self._fetch = fetch
        self._now_s = now_s
        self._thread = ThreadPoolExecutor(1, "belfry-oidc")
        self._keys: Keys = {}
        self._kept_until_s = self._quiet_until_s = float("-inf")
        self._why = ""
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, key_id: str) -> jwt.PyJWK | None:
        """The key of this id, or None if none is published; raises `KeysUnavailable`."""
        if self._kept(key_id) is None and self._now_s() >= self._quiet_until_s:
            await self._fetched()
        found = self._kept(key_id)
        if found is None and self._why:
            raise KeysUnavailable(self._why)
        return found

    def _kept(self, key_id: str) -> jwt.PyJWK | None:
        return self._keys.get(key_id) if self._now_s() < self._kept_until_s else None

    async def _fetched(self) -> None:
        """Fetch, or wait for the fetch that is under way; a caller that leaves does not end it."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch_once())
        await asyncio.shield(self._fetching)

    async def _fetch_once(self) -> None:
        try:
            self._keys = await asyncio.get_running_loop().run_in_executor(self._thread, self._fetch)
            self._why, quiet_s = "", KNOWN_S
            self._kept_until_s = self._now_s() + KEPT_S
        except KeysUnavailable as error:
            log.warning("the provider's keys cannot be fetched", reason=str(error))
            self._why, quiet_s = str(error), PAUSE_S
        finally:
            self._fetching = None
        self._quiet_until_s = self._now_s() + quiet_s


def published(issuer: str, jwks_url: str | None) -> Keys:
    """The keys that an issuer publishes now, by their ids; blocks.  Raises `KeysUnavailable`."""
    try:
        client = jwt.PyJWKClient(jwks_url or _discovered(issuer), timeout=FETCH_S)
        return {key.key_id: key for key in client.get_signing_keys() if key.key_id}
    except (jwt.PyJWTError, OSError, HTTPException, LookupError, TypeError, ValueError) as error:
        raise KeysUnavailable(f"{jwks_url or issuer}: {error}") from error


def _discovered(issuer: str) -> str:
    """Where an issuer's discovery document says that its keys lie."""
    address = issuer.rstrip("/") + "/.well-known/openid-configuration"
    with urlopen(address, timeout=FETCH_S) as answer:  # noqa: S310  (an operator's setting)
        return str(orjson.loads(answer.read())["jwks_uri"])
