"""A real server of S3 keeps payloads and checkpoints as files do, down, silent and closed too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from belfry.api.workers.day_payloads import DayPayloads, NotShown
from belfry.cli.entry import main
from belfry.client import ClaimBroken, ClaimCheck, FiredRecord
from belfry.host.object_store import opened
from belfry.kafka.outcome import Aborted
from belfry.outputs import payload_store as module
from belfry.outputs.day_store import DayStore, NotKept
from belfry.outputs.payload_store import AWAY, payload_store
from belfry.outputs.stored_payloads import SweptStore
from belfry.recovery.checkpoint_store import CheckpointFolder
from belfry.settings import Settings
from belfry.store.layout.day_files import encode_file, reference_to
from belfry.store.layout.day_reference import DayFile, Reference
from belfry.store.layout.day_reference import digest_of as day_digest_of
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire.claim_check import claims_of, digest_of, object_name
from tests.s3.server import BUCKET, S3Server
from tests.unit.engine.driver import FIRED

pytestmark = pytest.mark.slow

PAYLOAD = b"p" * 300_000
NAMES = ("BELFRY_PAYLOAD_STORE", "BELFRY_PAYLOAD_STORE_OPTIONS")


@pytest.fixture
def folder(unique: Callable[[str], str]) -> str:
    """A folder of the bucket."""
    return unique("folder")


def files(s3: S3Server, folder: str) -> tuple[Any, str]:
    return opened(f"s3://{BUCKET}/{folder}", s3.options(), NAMES)


def event(payload: bytes) -> FiredRecord:
    claims: Any = [(name, text.encode()) for name, text in claims_of(payload)]
    return FiredRecord("belfry.fired.shop", 0, 0, None, None, b"", claims)


def wait_for(true: Callable[[], bool], most_s: float = 60) -> None:
    until = monotonic() + most_s
    while not true():
        assert monotonic() < until
        sleep(0.05)


# -- the client ------------------------------------------------------------------------------------


def test_a_client_stores_a_payload_once_and_gets_it_back(s3: S3Server, folder: str) -> None:
    claims = ClaimCheck(f"s3://{BUCKET}/{folder}", 1_000, **s3.options())
    deposit = claims.deposit(PAYLOAD)
    assert deposit["payload"] == b""
    (path,) = s3.objects(folder)
    assert path == f"{folder}/{object_name(digest_of(PAYLOAD))}"
    assert claims.redeem(event(PAYLOAD)) == PAYLOAD
    stored = (s3.bucket / path).stat()
    claims.deposit(PAYLOAD)
    assert (s3.bucket / path).stat().st_mtime == stored.st_mtime, "a young one is not sent again"


def test_a_payload_that_a_sweep_might_take_is_stored_anew(s3: S3Server, folder: str) -> None:
    claims = ClaimCheck(f"s3://{BUCKET}/{folder}", 1_000, **s3.options())
    claims.deposit(PAYLOAD)
    (path,) = s3.objects(folder)
    s3.make_old(path, days=2)
    old = (s3.bucket / path).stat().st_mtime
    claims.deposit(PAYLOAD)
    assert (s3.bucket / path).stat().st_mtime > old + 86_400


@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_what_is_not_what_was_stored_is_refused(s3: S3Server, folder: str, damage: str) -> None:
    claims = ClaimCheck(f"s3://{BUCKET}/{folder}", 1_000, **s3.options())
    claims.deposit(PAYLOAD)
    files_of, path = files(s3, folder)
    path = f"{path}/{object_name(digest_of(PAYLOAD))}"
    if damage == "gone":
        files_of.rm_file(path)
    else:
        files_of.pipe_file(path, PAYLOAD[:-1] if damage == "cut" else PAYLOAD[:-1] + b"!")
    with pytest.raises(ClaimBroken):
        claims.redeem(event(PAYLOAD))


def test_a_client_without_the_right_key_is_told(s3: S3Server, folder: str) -> None:
    claims = ClaimCheck(f"s3://{BUCKET}/{folder}", 1_000, **s3.options(secret="another"))
    with pytest.raises(PermissionError):
        claims.deposit(PAYLOAD)
    assert s3.objects(folder) == []


# -- workers ---------------------------------------------------------------------------------------


class Place:
    """The payload store of a worker."""

    def __init__(self, s3: S3Server, folder: str, **options: str) -> None:
        self.tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.ALL)
        settings = Settings(
            payload_store=f"s3://{BUCKET}/{folder}", payload_store_options=s3.options(**options)
        )
        self.store = payload_store(settings, self.tenants, lambda *_: None)

    @property
    def problem(self) -> str:
        return self.tenants.store_problem


@pytest.fixture
def place(s3: S3Server, folder: str) -> Iterator[Place]:
    found = Place(s3, folder)
    yield found
    found.store.stop()


OBJECTS = {("shop", digest_of(PAYLOAD)): PAYLOAD}


def test_what_a_worker_stores_is_what_a_client_redeems(
    s3: S3Server, folder: str, place: Place
) -> None:
    place.store.put({**OBJECTS, ("mail", digest_of(b"x" * 200)): b"x" * 200})
    assert len(s3.objects(folder)) == 2
    claims = ClaimCheck(f"s3://{BUCKET}/{folder}/shop", **s3.options())
    assert claims.redeem(event(PAYLOAD)) == PAYLOAD


@pytest.mark.parametrize("trouble", ["down", "silent"])
def test_a_store_that_comes_back_is_used_again(
    s3: S3Server, folder: str, place: Place, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRY_S", 2.0)
    place.store.put({("shop", digest_of(b"first" * 99)): b"first" * 99})
    s3.stop() if trouble == "down" else s3.hang()
    began = monotonic()
    with pytest.raises(Aborted, match="were not stored"):
        place.store.put(OBJECTS)
    assert monotonic() - began < 2, "nobody waits for longer than half a second"
    assert place.problem == AWAY
    sleep(1)
    assert place.problem == AWAY
    s3.start() if trouble == "down" else s3.go_on()
    wait_for(lambda: not place.problem)
    assert f"{folder}/shop/{object_name(digest_of(PAYLOAD))}" in s3.objects(folder)


def test_a_worker_without_the_right_key_takes_no_large_payload(s3: S3Server, folder: str) -> None:
    place = Place(s3, folder, secret="another")
    with pytest.raises(Aborted, match="were not stored"):
        place.store.put(OBJECTS)
    assert place.problem == AWAY
    wait_for(lambda: "PermissionError" in place.store.away or "denied" in place.store.away.lower())
    place.store.stop()
    assert s3.objects(folder) == []


# -- sweeps and checkpoints ------------------------------------------------------------------------


def test_objects_are_put_aside_and_put_back(s3: S3Server, folder: str, place: Place) -> None:
    place.store.put(OBJECTS)
    digest, (path,) = digest_of(PAYLOAD), s3.objects(folder)
    s3.make_old(path)
    store = SweptStore(*files(s3, folder))
    (found,) = store.there.all()
    assert (found.tenant, found.digest, found.size) == ("shop", digest, len(PAYLOAD))
    before_ms = (found.stored_ms or 0) + 1
    assert not store.put_aside("shop", digest, before_ms - 1_000), "it is younger than that"
    assert store.put_aside("shop", digest, before_ms)
    assert s3.objects(folder) == [f"{folder}/.swept/shop/{object_name(digest)}"]
    (aside,) = store.aside.all()
    # A copy is as old as the copying.
    assert (aside.stored_ms or 0) > before_ms + 86_400_000
    assert not list(store.there.all())
    assert not store.put_aside("shop", digest, before_ms)
    assert store.put_back("shop", digest)
    assert s3.objects(folder) == [path]
    assert (s3.bucket / path).read_bytes() == PAYLOAD


def test_files_of_checkpoints_come_back(s3: S3Server, folder: str, tmp_path: Path) -> None:
    there = CheckpointFolder(*files(s3, folder))
    assert there.indexes() == {}
    local, back = tmp_path / "table.sst", tmp_path / "back.sst"
    local.write_bytes(PAYLOAD)
    there.put_file(digest_of(PAYLOAD), local)
    there.put_index("1.checkpoint", b"index")
    assert there.indexes() == {"1.checkpoint": b"index"}
    assert there.modified_ms().keys() == {digest_of(PAYLOAD)}
    there.get_file(digest_of(PAYLOAD), back)
    assert back.read_bytes() == PAYLOAD
    with pytest.raises(FileNotFoundError):
        there.get_file("0" * 64, back)
    there.remove(["1.checkpoint"], [digest_of(PAYLOAD), "0" * 64])
    assert (there.indexes(), there.modified_ms()) == ({}, {})


def test_day_files_are_written_read_in_parts_listed_and_removed(s3: S3Server, folder: str) -> None:
    store = DayStore(*files(s3, folder))
    file = DayFile(20_000, 3, b"12345678")
    data, (offset,) = encode_file([(b"shop/a", PAYLOAD)])
    store.write(file, data)
    assert store.read(file) == data
    (listed,) = store.all()
    assert (listed.file, listed.size) == (file, len(data))
    reference = Reference(file, offset, len(PAYLOAD), day_digest_of(PAYLOAD))
    assert store.payloads([reference, reference]) == [PAYLOAD, PAYLOAD]
    assert list(store.unfinished()) == []
    stands = reference_to(file, offset, PAYLOAD)
    assert asyncio.run(DayPayloads(store).of(stands)) == PAYLOAD
    with pytest.raises(NotKept):
        store.payloads([reference._replace(offset=offset + 1, digest=b"0" * 16)])
    store.remove(file)
    store.remove(file)
    assert list(store.all()) == []
    with pytest.raises(FileNotFoundError):
        store.read(file)
    with pytest.raises(NotShown, match="which is gone"):
        asyncio.run(DayPayloads(store).of(stands))
    s3.stop()
    with pytest.raises(NotShown, match="look again"):
        asyncio.run(DayPayloads(store).of(stands))


@pytest.mark.parametrize("trouble", ["down", "closed"])
def test_a_sweep_says_what_the_store_says(
    s3: S3Server,
    folder: str,
    trouble: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = s3.options(secret="another") if trouble == "closed" else s3.options()
    monkeypatch.setenv("BELFRY_PAYLOAD_STORE", f"s3://{BUCKET}/{folder}")
    monkeypatch.setenv("BELFRY_PAYLOAD_STORE_OPTIONS", json.dumps(options))
    monkeypatch.setattr("belfry.cli.verified_topics.world_of", lambda _session: "a belfry")
    if trouble == "down":
        s3.stop()
    assert main(["payloads", "sweep", "--apply"]) == 1
    assert "BELFRY_PAYLOAD_STORE does not do what it is asked" in capsys.readouterr().err
