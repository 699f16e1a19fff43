"""The provider's keys: kept for minutes, fetched once for all, and nobody waits for another's.

0 s      30 s               300 s
fetched  an unknown id may  all ids are
         be fetched again   fetched again
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from belfry.api.auth.provider_keys import KeysUnavailable, ProviderKeys, published

KEY: Any = object()


class Provider:
    """Publishes `new` keys beside its old one, as long as it can be reached."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {"old": KEY}
        self.is_reached = True
        self.asked = 0
        self.now_s = 1_000.0
        self.answers = threading.Event()
        self.answers.set()

    def fetch(self) -> dict[str, Any]:
        self.asked += 1
        self.answers.wait(5)
        if not self.is_reached:
            raise KeysUnavailable("it is away")
        return dict(self.keys)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def keys(provider: Provider) -> ProviderKeys:
    return ProviderKeys(provider.fetch, lambda: provider.now_s)


async def test_keys_are_kept_for_minutes(provider: Provider, keys: ProviderKeys) -> None:
    for after_s, asked in ((0, 1), (299, 1), (2, 2), (1, 2)):
        provider.now_s += after_s
        assert await keys.key("old") is KEY
        assert provider.asked == asked


async def test_an_unknown_key_is_asked_for_now_and_then(
    provider: Provider, keys: ProviderKeys
) -> None:
    assert await keys.key("new") is None
    provider.keys["new"] = KEY
    for after_s, found in ((29, None), (2, KEY), (29, KEY)):
        provider.now_s += after_s
        assert await keys.key("new") is found
    assert provider.asked == 2


async def test_an_outage_does_not_end_what_is_kept(provider: Provider, keys: ProviderKeys) -> None:
    await keys.key("old")
    provider.is_reached = False
    provider.now_s += 100
    for _ in range(3):
        assert await keys.key("old") is KEY
        with pytest.raises(KeysUnavailable):
            await keys.key("new")
    assert provider.asked == 2
    provider.now_s += 201
    with pytest.raises(KeysUnavailable, match="it is away"):
        await keys.key("old")
    provider.is_reached = True
    provider.now_s += 1
    assert await keys.key("old") is KEY


async def test_one_fetch_is_for_all_who_wait(provider: Provider, keys: ProviderKeys) -> None:
    assert await asyncio.gather(*(keys.key("old") for _ in range(50))) == [KEY] * 50
    assert provider.asked == 1


async def test_a_fetch_that_hangs_holds_up_nobody_else(
    provider: Provider, keys: ProviderKeys
) -> None:
    await keys.key("old")
    provider.now_s += 31
    provider.answers.clear()
    provider.keys["new"] = KEY
    waiting = [asyncio.create_task(keys.key("new")) for _ in range(20)]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(0.5):
        assert await keys.key("old") is KEY
        assert await asyncio.to_thread(lambda: "the loop's own threads are free")
    waiting[0].cancel()
    provider.answers.set()
    assert await asyncio.gather(*waiting[1:]) == [KEY] * 19
    assert provider.asked == 2


@pytest.mark.parametrize("jwks_url", ["http://127.0.0.1:1/keys", "file:///keys", None])
def test_what_cannot_be_fetched_is_said(jwks_url: str | None) -> None:
    with pytest.raises(KeysUnavailable, match=jwks_url or "http://127.0.0.1:2"):
        published("http://127.0.0.1:2", jwks_url)
