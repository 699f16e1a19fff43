"""A tenant's own input topic says whose request it is; each is handed over exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belfry.client import Client
from belfry.wire.claims import signature
from tests.acceptance.harness.http import Http, schedules
from tests.acceptance.harness.reading import read_all
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

STAMPED = {"message.timestamp.type": "LogAppendTime"}


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("inlet"), tmp_path)


def put(site: Site, tenant: str, value: bytes | None, **more: Any) -> None:
    """Produce to a tenant's own input topic."""
    site.producer.produce(site.topic(f"schedules.{tenant}"), value, **more)
    site.producer.flush(10)


def test_the_topics_tenant_wins_over_what_a_record_claims(site: Site) -> None:
    with site:
        site.create_topics([site.topic("schedules.mine")], STAMPED)
        site.worker().start().wait_ready()
        at = now_ms() + 800
        put(site, "mine", request("yours", "a", at=at, payload=b"a", request_id="a"))
        plain = [("belfry-tenant", b"yours"), ("belfry-id", b"b"), ("belfry-in", b"500ms")]
        put(site, "mine", b"b", headers=plain)
        put(site, "mine", request("mine", "gone", at=at + 60_000, payload=b"never"))
        put(site, "mine", None, key=b"mine/gone", partition=0)
        fired = site.wait_fired("mine", 2)
        assert {record.value for record in fired} == {b"a", b"b"}
        assert not any(n.startswith("belfry-origin") for r in fired for n, _ in r.headers)
        told = site.outcome("a")
        assert (told["tenant"], told["outcome"]) == ("mine", "ACCEPTED")
        assert told["source_topic"] == site.topic("schedules.mine")
        # A topic that is made while the worker runs is found by itself.
        site.create_topics([site.topic("schedules.late")], STAMPED)
        put(site, "late", request("late", "c", at=now_ms(), payload=b"c"))
        assert [record.value for record in site.wait_fired("late", 1)] == [b"c"]
        assert not site.fired("yours")
        assert not site.rejected()


def test_a_killed_worker_hands_each_request_over_once(site: Site) -> None:
    """Killed when a commit was answered, before anything else could note the position."""
    with site:
        site.create_topics([site.topic("schedules.mine")], STAMPED)
        worker = site.worker(BATCH_RECORDS="50").start().wait_ready()
        worker.kill()
        worker.start("S7:kill:6")
        wanted = [f"{number}" for number in range(300)]
        at = now_ms() + 1_500
        for number in wanted:
            body = request("mine", number, at=at, payload=number.encode(), request_id=number)
            site.producer.produce(site.topic("schedules.mine"), body)
            site.producer.flush(10) if int(number) % 25 == 0 else site.producer.poll(0)
        site.producer.flush(10)
        wait_for("the end of the worker", lambda: worker.child.exit_code() is not None)
        worker.start().wait_ready()
        fired = wait_for(
            "all to fire", lambda: f if len(f := site.fired("mine")) >= len(wanted) else []
        )
        assert sorted(record.value or b"" for record in fired) == sorted(map(str.encode, wanted))
        handed = read_all(site.bootstrap, site.topic("schedules"))
        assert len(handed) == len(wanted)
        outcomes = site.outcomes()
        assert {events[0]["outcome"] for events in outcomes.values()} == {"ACCEPTED"}
        assert {len(events) for events in outcomes.values()} == {1}


def test_a_cancel_that_waits_in_the_tenants_topic_counts(site: Site) -> None:
    """What came in while no worker ran is taken in before overdue events fire."""
    with site:
        site.create_topics([site.topic("schedules.mine")], STAMPED)
        worker = site.worker().start().wait_ready()
        due = now_ms() + 3_000
        for name in ("kept", "cancelled"):
            put(site, "mine", request("mine", name, at=due, payload=name.encode(), request_id=name))
            assert site.outcome(name)["outcome"] == "ACCEPTED"
        worker.kill()
        put(site, "mine", request("mine", "cancelled", action="CANCEL", request_id="cancel"))
        wait_for("the instant to pass", lambda: now_ms() > due)
        worker.start().wait_ready()
        assert site.outcome("cancel")["outcome"] == "CANCELLED"
        assert [record.value for record in site.wait_fired("mine", 1)] == [b"kept"]


def test_signed_requests_alone_count_where_all_have_to_sign(site: Site, tmp_path: Path) -> None:
    """By the client, from the tenant's own topic, over HTTP, and as a stray; forged ones do not."""
    secret = "the secret of tenant mine"
    (tmp_path / "secret").write_text(secret)
    signing = {
        "CLAIMS": "signed",
        "HTTP_WORKER_SECRET": "what all of the workers know",
        "SECRETS_DIR": str(tmp_path),
    }
    with site:
        site.create_topics([site.topic("schedules.mine")], STAMPED)
        http = Http(site.worker(**signing).start().wait_ready())
        status, said, _ = http("PUT", "/v1/tenants/mine", {"signing_secret_ref": "file:/dev/zero"})
        assert status == 422
        assert "BELFRY_SECRETS_DIR" in said["detail"]
        reference = {"signing_secret_ref": f"file:{tmp_path / 'secret'}"}
        assert http("PUT", "/v1/tenants/mine", reference)[0] in (200, 201)
        with Client(site.bootstrap, topic_prefix=site.prefix, secrets={"mine": secret}) as client:
            client.schedule("mine", "by-client", at=now_ms(), payload="by-client")
        forged = request("mine", "forged", at=now_ms(), request_id="forged")
        site.send(forged, key=b"mine", headers=[("belfry-signature", b"0" * 64)])
        site.ask("mine", "unsigned", at=now_ms(), request_id="unsigned")
        put(site, "mine", request("mine", "by-topic", at=now_ms(), payload=b"by-topic"))
        for number in range(4):
            body = request("mine", f"{number}", at=now_ms(), payload=b"%d" % number)
            shown = signature(secret.encode(), "mine", b"mine", body, None)
            headers = [("belfry-signature", shown)]
            site.send(body, key=b"mine", headers=headers, partition=number)
        asked = {"schedule_id": "by-http", "at": now_ms(), "payload_text": "by-http"}
        assert http("POST", schedules("mine"), asked)[0] == 201
        wanted = {b"by-client", b"by-topic", b"by-http", b"0", b"1", b"2", b"3"}
        wait_for("all", lambda: wanted <= {record.value for record in site.fired("mine")})
        assert site.outcome("forged")["code"] == "bad_signature"
        assert site.outcome("unsigned")["code"] == "unsigned"
        assert {record.value for record in site.fired("mine")} == wanted
        assert len(site.rejected()) == 2
