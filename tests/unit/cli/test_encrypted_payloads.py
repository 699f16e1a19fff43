"""Encrypted payloads as they are shown by a lookup, and carried by an export and an import."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from belfry.api.json import shapes
from belfry.api.routes.lookup import ScheduleLookup
from belfry.api.workers.day_payloads import DayPayloads
from belfry.api.workers.holdings import Holdings
from belfry.cli import payload_keys
from belfry.cli.failures import CommandError
from belfry.client.errors import BelfryError
from belfry.client.portable import portable, request_fields, sendable
from belfry.store.lookup import ScheduleStatus, standing_of
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import T0, Driver
from tests.unit.engine.test_encrypted_payloads import (
    NEW,
    OLD,
    SECRET,
    asked,
    kept,
    keyed,
    let,
)


class Reads:
    """Reads of the one partition of a driver, asked without a cluster."""

    def homes(self, *_: Any) -> list[int]:
        return [0]

    async def answer(self, _request: Any, _caller: Any, home: int, look: Any, *_: Any) -> Any:
        return await look(home)


class Rows:
    """The driver's rows, in place of what gathers lookups."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def standing(self, _partition: int, name: bytes) -> ScheduleStatus | None:
        return standing_of(self._driver.rows, name, T0)


def looked_up(driver: Driver, tenants: Tenants | None = None) -> dict[str, Any]:
    """What HTTP shows of the schedule, by a worker that knows of `tenants` what the engine does."""
    nobody: Any = None
    held = Holdings(nobody, tenants or driver.tenants, 1)
    holdings = SimpleNamespace(
        tenant=held.tenant, payload_keys=held.payload_keys, waits=lambda *_: (None, None)
    )
    ready = SimpleNamespace(holdings=holdings, day_payloads=DayPayloads(None))
    parts: Any = SimpleNamespace(ready=ready, now_ms=lambda: T0)
    reads: Any = Reads()
    lookup = ScheduleLookup(parts, reads)
    vars(lookup)["_gathered"] = Rows(driver)
    request: Any = SimpleNamespace(url=SimpleNamespace(path="/"))
    caller: Any = SimpleNamespace(may=lambda _: True)
    answer = asyncio.run(lookup.look_up(request, caller, "demo", "a"))
    shown: dict[str, Any] = orjson.loads(answer.body)
    return shown


def test_a_lookup_shows_it_as_it_was_sent_or_says_why_not() -> None:
    driver = keyed(OLD)
    asked(driver)
    shown = looked_up(driver)
    assert (shown["payload_text"], shown["payload_bytes"]) == (SECRET.decode(), len(SECRET))
    let(driver, NEW)
    hidden = looked_up(driver)
    assert not [name for name in hidden if name.startswith("payload_") and name != "payload_bytes"]
    assert hidden["unreadable"] == shapes.UNDECRYPTABLE


def test_a_lookup_needs_no_tenant_that_was_met() -> None:
    """After a take-over the store has rows of tenants that nothing was asked of yet."""
    driver = keyed(OLD)
    asked(driver)
    strangers = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.ALL)
    assert looked_up(driver, strangers)["unreadable"] == shapes.UNDECRYPTABLE
    strangers.effective_of = {"demo": driver.tenants.of("demo").effective}.get
    assert looked_up(driver, strangers)["payload_text"] == SECRET.decode()
    assert strangers.known(b"demo") is None


def test_an_export_carries_it_as_it_lies_and_an_import_decrypts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = keyed(OLD)
    asked(driver)
    line = portable(kept(driver))
    assert SECRET.decode() not in str(line)
    request = request_fields(line)
    with pytest.raises(BelfryError, match="is encrypted: decrypt it"):
        sendable(request)
    stands = {"demo": TenantPolicy("demo", payload_key_ref="file:keys")}
    monkeypatch.setattr(
        payload_keys, "kafka_policies", lambda _: SimpleNamespace(all=lambda: stands)
    )
    session: Any = SimpleNamespace(settings=SimpleNamespace(secrets_dir=tmp_path))
    for secret, why in ((None, "cannot be read"), (NEW, "demo/a is not imported: the key")):
        if secret is not None:
            (tmp_path / "keys").write_bytes(secret + b"\n")
        with pytest.raises(CommandError, match=why):
            list(payload_keys.decrypting(session, [request]))
    (tmp_path / "keys").write_bytes(NEW + b"\n" + OLD + b"\n")
    (sent,) = payload_keys.decrypting(session, [request])
    assert sendable(sent)["payload"] == SECRET
    stands.clear()
    with pytest.raises(CommandError, match="has no payload_key_ref"):
        list(payload_keys.decrypting(session, [request]))
