"""A schedule whose payload lies in a day file is shown whole, or with the reason why it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from fastapi import FastAPI
from fsspec.implementations.local import LocalFileSystem
from starlette.testclient import TestClient

from belfry.api.json import shapes
from belfry.api.workers import day_payloads
from belfry.api.workers.day_payloads import DayPayloads, NotShown
from belfry.outputs.day_store import DayStore
from belfry.store.layout.day_files import encode_file, reference_to
from belfry.store.layout.day_reference import DayFile
from belfry.store.layout.pending import Away
from tests.unit.api.test_two_workers import HOME, workers
from tests.unit.store.test_due_lookup import DueShelf
from tests.unit.store.test_lookup import NOW_MS

__all__ = ["workers"]

FILE: Final = DayFile(20_000, 0, b"12345678")
PAYLOADS: Final = {"old": b'{"order":1}' * 20, "new": b"\xff" * 100}


class Folder(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A folder that may be slow, or fail, and that counts what it is asked for."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.silent: Event | None = None
        self.error: Exception | None = None

    def cat_ranges(self, *given: Any, **more: Any) -> Any:
        self.asked += 1
        if self.silent is not None:
            self.silent.wait(30)
        if self.error is not None:
            raise self.error
        return super().cat_ranges(*given, **more)


class Days:
    """A store with one file, and what stands for its payloads."""

    def __init__(self, folder: Path) -> None:
        self.files = Folder()
        self.store = DayStore(self.files, str(folder))
        data, offsets = encode_file([(k.encode(), v) for k, v in PAYLOADS.items()])
        self.store.write(FILE, data)
        self.path = Path(self.store.path_of(FILE))
        self.stands: dict[str, Away] = {
            name: reference_to(FILE, offset, payload)
            for (name, payload), offset in zip(PAYLOADS.items(), offsets, strict=True)
        }


@pytest.fixture
def days(tmp_path: Path) -> Days:
    return Days(tmp_path)


@pytest.fixture
def payloads(days: Days) -> DayPayloads:
    return DayPayloads(days.store)


def opened(app: FastAPI, payloads: DayPayloads) -> None:
    """Let a worker read payloads there."""
    object.__setattr__(app.state.parts.ready, "day_payloads", payloads)


@pytest.fixture
def look(
    workers: list[FastAPI],
    days: Days,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str], Any]]:
    """Asks worker 0 for a schedule: `old` lies with it, `new` with the other one."""
    for number, name in enumerate(PAYLOADS):
        shelf = DueShelf()
        shelf.add("moved", name, NOW_MS + 60_000, payload=days.stands[name])
        holdings = workers[number].state.parts.ready.holdings
        monkeypatch.setattr(holdings, "_rows", shelf.rows)
        opened(workers[number], DayPayloads(days.store))
    with TestClient(workers[0], base_url="http://127.0.0.1:8700") as client:
        yield lambda name: client.get(f"{HOME}/{name}").json()


def test_it_is_shown_whole(look: Callable[[str], Any]) -> None:
    found = look("old")
    assert found["payload_text"] == PAYLOADS["old"].decode()
    assert "unreadable" not in found
    assert found["payload_bytes"] == len(PAYLOADS["old"])


def test_so_it_is_by_another_worker(look: Callable[[str], Any]) -> None:
    found = look("new")
    assert found["payload_base64"].startswith("////")
    assert "unreadable" not in found


def test_a_worker_without_the_store_says_so(
    look: Callable[[str], Any],
    workers: list[FastAPI],
) -> None:
    opened(workers[0], DayPayloads(None))
    found = look("old")
    assert "set BELFRY_DAY_STORE" in found["unreadable"]
    assert not {"payload_text", "payload_base64"} & found.keys()
    assert found["state"] == "PENDING"


def test_what_the_store_does_not_give_is_said(look: Callable[[str], Any], days: Days) -> None:
    days.files.error = ConnectionError("s3://user:secret@bucket")
    found = look("old")["unreadable"]
    assert found.endswith("whose store does not give it now (ConnectionError): look again")
    days.files.error = None
    whole = days.path.read_bytes()
    days.path.write_bytes(whole.replace(b"order", b"wrong"))
    assert "which holds something else" in look("old")["unreadable"]
    days.path.unlink()
    assert "which is gone" in look("old")["unreadable"]
    days.path.write_bytes(whole)
    assert look("old")["payload_text"] == PAYLOADS["old"].decode()


def test_a_reference_of_a_later_release_is_said(payloads: DayPayloads, days: Days) -> None:
    with pytest.raises(NotShown, match="later release"):
        asyncio.run(payloads.of(b"\x02" + days.stands["old"][1:]))


def test_what_else_is_unreadable_remains_the_reason(
    look: Callable[[str], Any], days: Days, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later release may file what has a rule that this one cannot read."""
    monkeypatch.setattr(shapes, "why_unreadable_rule", lambda _rule: "its rule is of later")
    found = look("old")
    assert (found["unreadable"], found["payload_bytes"]) == ("its rule is of later", 220)
    assert found["payload_text"] == PAYLOADS["old"].decode()
    days.path.unlink()
    monkeypatch.setattr(day_payloads, "KEPT_BYTES", 0)
    assert look("old")["unreadable"] == "its rule is of later"


def test_a_silent_store_costs_a_look_little_and_a_few_threads(
    payloads: DayPayloads, days: Days, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_payloads, "MOST_S", 0.05)
    days.files.silent = Event()

    async def looks() -> bytes:
        found = await asyncio.gather(
            *(payloads.of(days.stands["old"]) for _ in range(20)), return_exceptions=True
        )
        assert {str(each) for each in found} == {
            "its payload lies in a day file, whose store has not answered within 0.05 s: look again"
        }
        assert days.files.asked == day_payloads.AT_ONCE
        with pytest.raises(NotShown):
            await payloads.of(days.stands["new"])
        assert days.files.asked == day_payloads.AT_ONCE
        assert days.files.silent is not None
        days.files.silent.set()
        for _ in range(1_000):
            if payloads._kept:
                break
            await asyncio.sleep(0.01)
        # What came late is there for the next look.
        days.path.unlink()
        return await payloads.of(days.stands["old"])

    assert asyncio.run(looks()) == PAYLOADS["old"]


def test_little_is_kept(payloads: DayPayloads, days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_payloads, "KEPT_BYTES", 250)

    async def looks(*names: str) -> None:
        for name in names:
            assert await payloads.of(days.stands[name]) == PAYLOADS[name]

    asyncio.run(looks("old", "old"))
    assert days.files.asked == 1
    # Both are 320 bytes.
    asyncio.run(looks("new", "new", "old"))
    assert days.files.asked == 3
    monkeypatch.setattr(day_payloads, "KEPT_BYTES", 99)
    asyncio.run(looks("new", "new"))
    assert days.files.asked == 5
    assert payloads._kept_bytes <= 250
