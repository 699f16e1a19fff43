"""Large payloads lie in a store and not in Kafka's state, through kills and its outages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from belfry.client import ClaimCheck, FiredRecord
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claim_check import CLAIM, digest_of, object_name
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

OVER: Final = 10_000
SOON_MS: Final = 2_000


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of the store."""
    folder = tmp_path / "payloads"
    folder.mkdir()
    return folder


@pytest.fixture
def site(kafka: str, tmp_path: Path, store: Path, unique: Callable[[str], str]) -> Iterator[Site]:
    """A belfry whose large payloads go to that folder; nothing is started."""
    given = {"PAYLOAD_STORE": f"file://{store}"}
    with Site(kafka, unique("claimed"), tmp_path, **given) as site:
        site.schedules_topic()
        site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
        policy = TenantPolicy("shop", claim_check_over_bytes=OVER)
        TenantPolicies(Cluster(site.bootstrap), site.prefix).put(policy)
        yield site


def redeemed(store: Path, record: Record) -> bytes | None:
    """What a consumer that redeems claims gets of a fired record."""
    event = FiredRecord(
        record.topic, record.partition, record.offset, record.timestamp_ms, record.key,
        record.value, record.headers,
    )  # fmt: skip
    return ClaimCheck(f"file://{store}/shop").redeem(event)


def large(number: int) -> bytes:
    """A payload of 200 kB."""
    return b"%06d" % number * 33_334


def files(store: Path) -> list[str]:
    """What lies in the store."""
    return sorted(str(each.relative_to(store)) for each in store.rglob("*") if each.is_file())


def test_what_a_killed_step_has_stored_is_claimed_by_the_step_that_is_done_again(
    site: Site, store: Path
) -> None:
    """A worker dies between the store and the transaction: one event, and one object."""
    worker = site.worker().start("P1:kill")
    site.ask("shop", "a", at=now_ms() + SOON_MS, payload=large(1))
    assert worker.wait_end(60) != 0
    path = f"shop/{object_name(digest_of(large(1)))}"
    assert files(store) == [path]
    # Nothing claims it yet: whatever was committed could be redeemed.
    rows = [each.value or b"" for each in site.read(site.topic("changelog"))]
    assert not [each for each in rows if b"shopa" in each]
    worker.start().wait_ready()
    (fired,) = site.wait_fired("shop", 1)
    assert (fired.value, fired.header(CLAIM)) == (b"", digest_of(large(1)).encode())
    assert redeemed(store, fired) == large(1)
    assert files(store) == [path]
    assert worker.stop() == 0
    changelog = site.read(site.topic("changelog"))
    assert [each for each in changelog if b"shopa" in (each.value or b"")]
    assert not [each for each in changelog if b"000001000001" in (each.value or b"")]
    assert len(site.fired("shop")) == 1


def test_an_outage_of_the_store_refuses_large_payloads_and_holds_up_nobody(
    site: Site, store: Path
) -> None:
    worker = site.worker().start().wait_ready()
    site.ask("shop", "before", at=now_ms(), payload=large(2))
    (first,) = site.wait_fired("shop", 1)
    assert redeemed(store, first) == large(2)
    away = store.rename(store.with_name("away"))
    # Nothing can be written where a file is.
    store.write_text("no folder")
    numbers = count()

    def asked(tenant: str, payload: bytes) -> str:
        request_id = f"{tenant}-{next(numbers)}"
        site.ask(tenant, "a", at=now_ms(), payload=payload, request_id=request_id)
        told = site.outcome(request_id)
        return str(told["code"] or told["outcome"])

    assert asked("shop", large(3)) == "payload_not_stored"
    # Others, and small ones, go on; their events come at once.
    began = time.monotonic()
    assert asked("mail", large(3)) in ("ACCEPTED", "UPDATED")
    assert asked("shop", b"small") in ("ACCEPTED", "UPDATED")
    site.wait_fired("mail", 1)
    assert len(site.wait_fired("shop", 2)) == 2
    assert time.monotonic() - began < 10
    store.unlink()
    away.rename(store)
    wait_for("the store", lambda: asked("shop", large(4)) in ("ACCEPTED", "UPDATED"))
    wait_for("its event", lambda: large(4) in {redeemed(store, e) for e in site.fired("shop")})
    assert worker.stop() == 0
