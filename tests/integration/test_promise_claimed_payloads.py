"""Large payloads lie in a store and not in Kafka's state, through kills and its outages."""

from __future__ import annotations

import json
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
from tests.s3.server import BUCKET, S3Server

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
        with_policy(site)
        yield site


def with_policy(site: Site) -> None:
    """Let large payloads of the tenant lie elsewhere."""
    site.schedules_topic()
    site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
    policy = TenantPolicy("shop", claim_check_over_bytes=OVER)
    TenantPolicies(Cluster(site.bootstrap), site.prefix).put(policy)


def as_event(record: Record) -> FiredRecord:
    """A fired record as the client reads it."""
    return FiredRecord(
        record.topic, record.partition, record.offset, record.timestamp_ms, record.key,
        record.value, record.headers,
    )  # fmt: skip


def redeemed(store: Path, record: Record) -> bytes | None:
    """What a consumer that redeems claims gets of a fired record."""
    return ClaimCheck(f"file://{store}/shop").redeem(as_event(record))


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


@pytest.mark.parametrize("trouble", ["down", "silent"])
def test_an_object_store_that_is_away_holds_up_nobody(
    kafka: str, tmp_path: Path, s3: S3Server, unique: Callable[[str], str], trouble: str
) -> None:
    """Refused, or silent with its connections open: others go on, and it is found again."""
    folder = unique("claimed")
    given = {
        "PAYLOAD_STORE": f"s3://{BUCKET}/{folder}",
        "PAYLOAD_STORE_OPTIONS": json.dumps(s3.options()),
    }
    with Site(kafka, folder, tmp_path, **given) as site:
        with_policy(site)
        worker = site.worker().start().wait_ready()
        numbers = count()

        def asked(tenant: str, payload: bytes) -> str:
            request_id = f"{tenant}-{next(numbers)}"
            site.ask(tenant, "a", at=now_ms(), payload=payload, request_id=request_id)
            told = site.outcome(request_id)
            return str(told["code"] or told["outcome"])

        def redeemed_events() -> set[bytes | None]:
            claims = ClaimCheck(f"s3://{BUCKET}/{folder}/shop", **s3.options())
            return {claims.redeem(as_event(each)) for each in site.fired("shop")}

        # A busy machine may not store the first one in time.
        wait_for("the store", lambda: asked("shop", large(1)) in ("ACCEPTED", "UPDATED"))
        wait_for("its event", lambda: large(1) in redeemed_events())
        s3.stop() if trouble == "down" else s3.hang()
        assert asked("shop", large(2)) == "payload_not_stored"
        assert asked("mail", large(2)) in ("ACCEPTED", "UPDATED")
        site.wait_fired("mail", 1)
        s3.start() if trouble == "down" else s3.go_on()
        wait_for("the store", lambda: asked("shop", large(3)) in ("ACCEPTED", "UPDATED"), 90)
        wait_for("its event", lambda: large(3) in redeemed_events())
        assert worker.stop() == 0
