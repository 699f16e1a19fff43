"""Large payloads at their store: whole before a step is committed, and no outage holds us up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any, Final

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from belfry.client import ClaimCheck, FiredRecord
from belfry.kafka.outcome import Aborted
from belfry.outputs import payload_store as module
from belfry.outputs.payload_store import AWAY, NOT_SET, PayloadStore, payload_store
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire.claim_check import claims_of, digest_of, object_name
from tests.unit.engine.driver import FIRED

PAYLOAD: Final = b"p" * 1_000
DIGEST: Final = digest_of(PAYLOAD)
OBJECTS: Final = {("shop", DIGEST): PAYLOAD}
PATH: Final = f"shop/{object_name(DIGEST)}"


class Files(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system that fails or hangs as a test says."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.problem: Exception | None = None
        self.go = Event()
        self.go.set()
        self.written: list[str] = []

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **given: Any) -> Any:
        self.go.wait(10)
        if self.problem is not None:
            raise self.problem
        self.written.append(path)
        return super().pipe_file(path, value, mode, **given)


class Bucket(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """What takes many objects at once, as those of buckets do; it shows how it was asked."""

    async_impl = True
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.asked: list[list[str]] = []

    def pipe(self, path: Any, value: Any = None, **_given: Any) -> None:
        self.asked.append(sorted(path))
        for each, payload in path.items():
            self.pipe_file(each, payload)


class Place:
    """A store in a folder, with the directory that it tells of its troubles."""

    def __init__(self, folder: Path, files: Any) -> None:
        self.folder, self.files = folder, files
        self.tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.ALL)
        self.told: dict[str, int] = {}
        self.store = PayloadStore(files, str(folder), self.tenants, self._count)

    def _count(self, outcome: str, objects: int) -> None:
        self.told[outcome] = self.told.get(outcome, 0) + objects

    @property
    def names(self) -> list[str]:
        """Files below the folder."""
        found = (each for each in self.folder.rglob("*") if each.is_file())
        return sorted(str(each.relative_to(self.folder)) for each in found)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(module, "PUT_S", 0.2)
    monkeypatch.setattr(module, "AGAIN_S", 0.02)
    found = Place(tmp_path / "store", Files())
    yield found
    found.files.problem = None
    found.files.go.set()
    found.store.stop()


def wait_for(true: Callable[[], bool]) -> None:
    until = monotonic() + 10
    while not true():
        assert monotonic() < until
        sleep(0.01)


def test_what_is_stored_is_what_a_consumer_redeems(place: Place) -> None:
    place.store.put(OBJECTS)
    assert place.names == [PATH]
    claims: Any = [(name, text.encode()) for name, text in claims_of(PAYLOAD)]
    event = FiredRecord("belfry.fired.shop", 0, 0, None, None, b"", claims)
    assert ClaimCheck(f"file://{place.folder}/shop").redeem(event) == PAYLOAD
    assert place.told == {"stored": 1}


def test_a_tenant_has_a_folder_of_its_own(place: Place) -> None:
    place.store.put({**OBJECTS, ("mail", DIGEST): PAYLOAD})
    assert place.names == [f"mail/{object_name(DIGEST)}", PATH]


def test_what_was_stored_just_now_is_not_stored_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.store.put(OBJECTS)
    other = PAYLOAD + b"2"
    place.store.put({**OBJECTS, ("shop", digest_of(other)): other})
    assert len(place.files.written) == 2
    # After a while it is, so that whoever removes by age finds that it is in use.
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    place.store.put(OBJECTS)
    assert len(place.files.written) == 3
    assert len(place.names) == 2


def test_a_bucket_is_asked_once_for_all_objects_of_a_step() -> None:
    place = Place(Path("/bucket/belfry"), Bucket())
    other = PAYLOAD + b"2"
    place.store.put({**OBJECTS, ("shop", digest_of(other)): other})
    (asked,) = place.files.asked
    assert f"/bucket/belfry/{PATH}" in asked
    assert len(asked) == 2
    assert place.files.cat_file(f"/bucket/belfry/{PATH}") == PAYLOAD


def test_a_failure_rolls_the_step_back_and_ends_once_the_payload_is_stored(place: Place) -> None:
    place.files.problem = PermissionError("no")
    with pytest.raises(Aborted, match="PermissionError: no") as failed:
        place.store.put(OBJECTS)
    assert (failed.value.topics, failed.value.blocked) == ({}, False)
    assert place.tenants.store_problem == AWAY
    assert place.store.away == "PermissionError: no"
    assert place.names == []
    # Each try that fails is counted, so that an alert lasts as long as the outage.
    wait_for(lambda: place.told["failed"] > 2)
    place.files.problem = None
    wait_for(lambda: not place.tenants.store_problem)
    assert (place.names, place.store.away) == ([PATH], "")
    # Who sends the request again finds it there.
    place.files.problem = PermissionError("no")
    place.store.put(OBJECTS)


def test_a_store_that_hangs_costs_a_step_no_more_than_its_limit(place: Place) -> None:
    place.files.go.clear()
    began = monotonic()
    with pytest.raises(Aborted, match="has not answered within"):
        place.store.put(OBJECTS)
    assert monotonic() - began < 5
    assert place.tenants.store_problem == AWAY
    place.files.go.set()
    wait_for(lambda: not place.tenants.store_problem)
    assert place.names == [PATH]


def test_a_try_that_never_ends_is_left_behind(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is gone without a word keeps no payload out for ever."""
    monkeypatch.setattr(module, "TRY_S", 0.05)
    monkeypatch.setattr(module, "MOST_LEFT", 2)
    stored, never, hung = place.files.pipe_file, Event(), list[str]()

    def pipe_file(path: str, value: bytes, **given: Any) -> Any:
        # That of the step and those that its thread may leave behind.
        if len(hung) < 1 + hangs:
            hung.append(path)
            never.wait(30)
            raise ConnectionError("gone")
        return stored(path, value, **given)

    monkeypatch.setattr(place.files, "pipe_file", pipe_file)
    hangs = 1
    with pytest.raises(Aborted, match="has not answered within"):
        place.store.put(OBJECTS)
    wait_for(lambda: not place.tenants.store_problem)
    assert (len(hung), place.names) == (2, [PATH])
    # Where all hang, no more than so many do, one of before among them; they end with it.
    hangs, other = 100, PAYLOAD + b"2"
    with pytest.raises(Aborted):
        place.store.put({("shop", digest_of(other)): other})
    wait_for(lambda: len(hung) == 2 + 2)
    sleep(0.2)
    assert len(hung) == 2 + 2
    hangs = 0
    never.set()
    wait_for(lambda: not place.tenants.store_problem)
    assert len(place.names) == 2


def test_all_that_has_failed_is_stored_before_requests_are_taken_again(place: Place) -> None:
    place.files.problem = OSError("away")
    other = PAYLOAD + b"2"
    for objects in (OBJECTS, {("mail", digest_of(other)): other}):
        with pytest.raises(Aborted):
            place.store.put(objects)
    place.files.problem = None
    wait_for(lambda: not place.tenants.store_problem)
    assert len(place.names) == 2


def test_nobody_sees_half_of_an_object(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.store.put({("shop", "0" * 64): b"another"})

    def half(path: str, value: bytes, **_given: Any) -> None:
        Path(path).write_bytes(value[: len(value) // 2])
        raise OSError("the disk is full")

    monkeypatch.setattr(place.files, "pipe_file", half)
    with pytest.raises(Aborted, match="the disk is full"):
        place.store.put(OBJECTS)
    place.store.stop()
    assert place.names == [f"shop/{object_name('0' * 64)}"]


def test_without_a_store_large_payloads_are_refused_with_the_setting(tmp_path: Path) -> None:
    tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES)
    store = payload_store(Settings(), tenants, lambda *_: None)
    assert tenants.store_problem == NOT_SET
    with pytest.raises(Aborted, match="BELFRY_PAYLOAD_STORE"):
        store.put(OBJECTS)
    store.stop()
    tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES)
    payload_store(Settings(payload_store=f"file://{tmp_path}"), tenants, lambda *_: None).put(
        OBJECTS
    )
    assert (tmp_path / PATH).read_bytes() == PAYLOAD
    assert not tenants.store_problem


def test_an_object_store_is_asked_before_the_first_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first answer takes longer than a step waits, and may be a refusal of what was asked."""
    bucket, asked = Bucket(), Event()

    def exists(path: str, **_given: Any) -> bool:
        assert path == "/bucket/belfry"
        asked.set()
        raise PermissionError("it may store, and not look")

    monkeypatch.setattr(bucket, "exists", exists)
    monkeypatch.setattr(module, "payload_files", lambda _settings: (bucket, "/bucket/belfry"))
    tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES)
    store = payload_store(Settings(), tenants, lambda *_: None)
    assert asked.wait(10)
    store.put(OBJECTS)
    assert (store.away, tenants.store_problem) == ("", "")
