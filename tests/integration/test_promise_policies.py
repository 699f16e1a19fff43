"""Policies: complete before the first fire, in effect within two seconds, and gone when removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from belfry.cli.entry import main
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from belfry.wire import catalogue, framing
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

EFFECT_MS = 2_000
SIGNED = {"POLICIES": "signed", "HTTP_WORKER_SECRET": "a secret that all workers share"}


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry with its topics; the first test that asks starts its worker."""
    home = tmp_path_factory.mktemp("policies")
    name, secrets = f"policies-{time.monotonic_ns():x}", str(home / "secrets")
    with Site(kafka, name, home, SECRETS_DIR=secrets) as site:
        site.schedules_topic()
        site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
        yield site


@pytest.fixture(scope="module")
def policies(site: Site) -> TenantPolicies:
    """The operator's side."""
    return TenantPolicies(Cluster(site.bootstrap), site.prefix)


def envelope(record: Record) -> dict[str, Any]:
    """The FiredEvent in a record's value."""
    frame = framing.read_frame(record.value or b"")
    return catalogue.own_reader("FiredEvent").read(frame.body)


def names(record: Record) -> set[str]:
    """Names of a record's headers."""
    return {name for name, _ in record.headers}


def test_a_policy_is_known_before_the_first_fire(site: Site, policies: TenantPolicies) -> None:
    """Also when what fires was accepted long before, by a worker that has gone."""
    first = site.worker().start().wait_ready()
    site.ask("wrapped", "early", at=now_ms() + 60_000, request_id="early")
    site.outcome("early")
    first.stop()
    policies.put(
        TenantPolicy("wrapped", delivery="ENVELOPE", cloudevents=True),
        TenantPolicy("elsewhere", output_topic=site.topic("reminders")),
    )
    site.ask("wrapped", "early", at=now_ms(), payload=b"x")
    site.ask("elsewhere", "a", at=now_ms(), payload=b"y")
    first.start().wait_ready()
    (fired,) = site.wait_fired("wrapped", 1)
    assert envelope(fired)["payload"] == b"x"
    assert {"ce_id", "ce_source", "ce_type", "ce_time", "ce_specversion"} <= names(fired)
    (moved,) = wait_for(
        "an event on the policy's topic", lambda: site.read(site.topic("reminders"))
    )
    assert moved.value == b"y"
    assert "ce_id" not in names(moved)


def test_a_change_is_in_effect_within_two_seconds(site: Site, policies: TenantPolicies) -> None:
    site.ask("live", "before", at=now_ms(), payload=b"plain")
    site.wait_fired("live", 1)
    policies.put(TenantPolicy("live", delivery="ENVELOPE"))
    for number in range(8):
        site.ask("live", f"e{number}", at=now_ms() + EFFECT_MS, payload=b"wrapped")
    fired = site.wait_fired("live", 9)
    later = [each for each in fired if each.value != b"plain"]
    assert [envelope(each)["payload"] for each in later] == [b"wrapped"] * 8


def test_an_event_leads_to_its_request(site: Site, policies: TenantPolicies) -> None:
    """Where the policy asks for it: to the record that the event follows from, byte for byte."""
    site.ask("untraced", "a", at=now_ms())
    (plain,) = site.wait_fired("untraced", 1)
    assert "belfry-source" not in names(plain)
    policies.put(TenantPolicy("traced", source_header=True))
    for number in range(3):
        site.ask("traced", f"e{number}", at=now_ms() + EFFECT_MS, payload=b"of e%d" % number)
    for fired in site.wait_fired("traced", 3):
        topic, partition, offset = (fired.header("belfry-source") or b"").decode().split("/")
        requests = {(each.partition, each.offset): each for each in site.read(topic)}
        asked = requests[int(partition), int(offset)]
        assert (fired.header("belfry-schedule-id") or b"?") in (asked.value or b"")
        assert (fired.value or b"?") in (asked.value or b"")


def test_a_paused_tenant_waits_and_loses_nothing(site: Site, policies: TenantPolicies) -> None:
    policies.put(TenantPolicy("calm", paused=True))
    site.ask("calm", "a", at=now_ms() + EFFECT_MS, payload=b"a")
    site.ask("busy", "b", at=now_ms() + EFFECT_MS + 500, payload=b"b")
    site.wait_fired("busy", 1)
    assert site.fired("calm") == []
    policies.put(TenantPolicy("calm"))
    assert [each.value for each in site.wait_fired("calm", 1, timeout_s=5)] == [b"a"]


def test_payloads_lie_encrypted_and_wait_for_their_key(
    site: Site, policies: TenantPolicies
) -> None:
    """Nothing is kept readable while the key is missing; once its file is there, all goes on."""
    keys = site.home / "secrets" / "vault.keys"
    keys.parent.mkdir()
    policies.put(TenantPolicy("vault", payload_key_ref="file:vault.keys"))
    numbers = count()

    def code_of(payload: bytes) -> str:
        request_id = f"vault-{next(numbers)}"
        site.ask("vault", "a", at=now_ms() + EFFECT_MS, payload=payload, request_id=request_id)
        told = site.outcome(request_id)
        return str(told["code"] or told["outcome"])

    wait_for("a refusal", lambda: code_of(b"early") == "payload_key_missing")
    keys.write_text("0" * 64 + "\n")
    wait_for("the key", lambda: code_of(b"card 4711") in ("ACCEPTED", "UPDATED"))
    wait_for("its event", lambda: b"card 4711" in {each.value for each in site.fired("vault")})
    rows = [each.value for each in site.read(site.topic("changelog")) if each.value]
    assert [each for each in rows if b"vaulta" in each]
    assert not [each for each in rows if b"card 4711" in each]


def test_after_a_job_nothing_that_waits_needs_the_old_key(
    site: Site, policies: TenantPolicies
) -> None:
    """What was asked for under the old key fires though its line was taken away."""
    keys = site.home / "secrets" / "turning.keys"
    keys.parent.mkdir(exist_ok=True)
    http = Http(site.workers[0])
    jobs = "/v1/tenants/turning/jobs"

    def turn(*lines: str) -> None:
        keys.write_text("".join(f"{each * 64}\n" for each in lines))
        policies.put(TenantPolicy("turning", payload_key_ref="file:turning.keys"))
        sleep(EFFECT_MS / 1000)

    def left() -> tuple[int, str]:
        status, page, _ = http("POST", f"{jobs}?dry=true", {"action": "REKEY"})
        assert status == 200, page
        return page["matched"], page["key"]

    turn("0")
    for number in range(20):
        payload = b"of %d" % number
        site.ask("turning", f"s{number}", at=now_ms() + 3_600_000, payload=payload)
    site.ask("turning", "last", at=now_ms() + 3_600_000, payload=b"z", request_id="turning")
    site.outcome("turning")
    turn("1", "0")
    assert left()[0] == 21
    status, begun, _ = http("POST", jobs, {"job": "turn", "action": "REKEY"})
    assert status == 201, begun
    wait_for("the job", lambda: http("GET", f"{jobs}/turn")[1]["state"] == "DONE")
    found = http("GET", f"{jobs}/turn")[1]
    assert (found["done"], found["refused"], found["key"]) == (21, 0, left()[1])
    assert left()[0] == 0
    turn("1")
    site.ask("turning", "s7", action="TRIGGER")
    (fired,) = site.wait_fired("turning", 1)
    assert fired.value == b"of 7"


def test_a_removed_policy_leaves_the_defaults(site: Site, policies: TenantPolicies) -> None:
    policies.put(TenantPolicy("gone", delivery="ENVELOPE"))
    site.ask("gone", "a", at=now_ms() + EFFECT_MS, payload=b"x")
    (first,) = site.wait_fired("gone", 1)
    assert first.value != b"x"
    policies.remove("gone")
    site.ask("gone", "b", at=now_ms() + EFFECT_MS, payload=b"x")
    assert site.wait_fired("gone", 2)[-1].value == b"x" or b"x" in {
        each.value for each in site.fired("gone")
    }


def test_a_closed_belfry_serves_known_tenants_alone(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("closed"), tmp_path, UNKNOWN_TENANTS="closed") as site:
        site.worker().start().wait_ready()
        policies = TenantPolicies(Cluster(kafka), site.prefix)
        site.ask("stranger", "a", at=now_ms(), request_id="refused")
        assert site.outcome("refused")["code"] == "unknown_tenant"
        policies.put(TenantPolicy("stranger"))
        wait_for("the policy's effect", lambda: accepted(site, "stranger"), 5)
        policies.remove("stranger")
        wait_for("the removal's effect", lambda: not accepted(site, "stranger"), 5)


def accepted(site: Site, tenant: str) -> bool:
    """Whether a request of the tenant is accepted now."""
    request_id = f"try-{now_ms()}"
    site.ask(tenant, request_id, at=now_ms() + 3_600_000, request_id=request_id)
    return bool(site.outcome(request_id)["outcome"] == "ACCEPTED")


def test_where_policies_are_signed_a_strangers_is_not_carried_out(
    kafka: str, tmp_path: Path, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer with the right to write to the topic, and without the secret, changes nothing."""
    with Site(kafka, unique("vouched"), tmp_path, **SIGNED) as site:
        worker = site.worker().start().wait_ready()
        for name, value in SIGNED.items():
            monkeypatch.setenv(f"BELFRY_{name}", value)
        monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", kafka)
        monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
        assert main(["tenant", "set", "calm", "delivery=ENVELOPE"]) == 0
        stranger = TenantPolicies(Cluster(kafka), site.prefix)
        stranger.put(TenantPolicy("calm", paused=True))
        stranger.remove("calm")
        wait_for("both are told of", lambda: foreign(worker) >= 2)
        site.ask("calm", "a", at=now_ms(), payload=b"x")
        (fired,) = site.wait_fired("calm", 1)
        assert envelope(fired)["payload"] == b"x"
        stranger.put(TenantPolicy("calm", paused=True))
        wait_for("it is told of", lambda: foreign(worker) >= 3)
        assert main(["tenant", "sign", "calm"]) == 0
        time.sleep(EFFECT_MS / 1000)
        site.ask("calm", "b", at=now_ms(), payload=b"held")
        site.ask("busy", "c", at=now_ms() + 500, payload=b"c")
        site.wait_fired("busy", 1)
        assert len(site.fired("calm")) == 1


def foreign(worker: Worker) -> float:
    """How many records of strangers the worker has met."""
    lines = worker.get("/metrics")[1].splitlines()
    name = "belfry_foreign_records_total{"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
