"""Brokers that ask who one is, and for rights.

A tenant whose topic belfry may not write to waits alone; and a worker that shows a certificate and
a password, and trusts one authority, fires with the rights of docs/tenants.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster
from belfry.kafka.broker_features import ask_brokers
from belfry.settings import Settings
from tests.acceptance.harness.guarded import PASSWORD, Guarded, allow, guarded_broker, known
from tests.acceptance.harness.issuer import token_issuer, token_properties
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.architecture.tree import ROOT
from tests.integration.fetched_requests import FetchedRequests
from tests.integration.test_promise_tenants_apart import (
    fire_each,
    lateness_ms,
    neighbours,
)
from tests.unit.kafka.test_security import signed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A broker of its own with an authorizer; who is not named in a rule may do everything."""
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as found:
        yield found


def rules(topic: str) -> list[AclBinding]:
    """Everything is allowed on a topic, but to write."""
    pairs = (
        (AclOperation.ALL, AclPermissionType.ALLOW),
        (AclOperation.WRITE, AclPermissionType.DENY),
    )
    literal, anybody = ResourcePatternType.LITERAL, "User:ANONYMOUS"
    return [AclBinding(ResourceType.TOPIC, topic, literal, anybody, "*", *pair) for pair in pairs]


def test_a_topic_without_the_right_to_write_holds_its_tenant_alone(
    guarded: Guarded, tmp_path: Path
) -> None:
    with Site(guarded.open, "rights", tmp_path) as site:
        site.schedules_topic()
        good = next(neighbours(site, "blocked"))
        site.fired_topics(["blocked", good])
        worker = site.worker().start().wait_ready()
        first_ms = now_ms() + 3_000
        fire_each(site, "blocked", 5, first_ms, 100)
        fire_each(site, good, 20, first_ms, 150)
        admin, topic = guarded.admin, site.topic("fired.blocked")
        denied = rules(topic)
        for answer in admin.create_acls(denied).values():
            answer.result(20)
        # While the other one has no right, and may wait for as long as it likes.
        fired = site.wait_fired(good, 20)
        print("late by at most", max(lateness_ms(fired)), "ms")  # noqa: T201  # a figure to be read
        assert min(lateness_ms(fired)) >= 0
        assert len(fired) == 20
        wait_for("the log to say who waits", lambda: "tenant held" in worker.log.read_text())
        assert not site.fired("blocked")
        held = [line for line in worker.log.read_text().splitlines() if "tenant held" in line]
        assert all('"blocked"' in line and "WRITE" in line for line in held)
        for answer in admin.delete_acls([_filter(each) for each in denied]).values():
            answer.result(20)
        found = site.wait_fired("blocked", 5, timeout_s=60)
        assert len({record.value for record in found}) == len(found) == 5


def said(guarded: Guarded, **changed: str) -> str:
    """What a client is told that connects otherwise than the worker."""
    properties = guarded.properties("belfry")
    properties |= {name.replace("_", "."): value for name, value in changed.items()}
    cluster = Cluster(guarded.secure, properties)
    with pytest.raises(Unavailable) as refused:
        cluster.reach(cluster.admin())
    return str(refused.value)


def test_a_worker_that_is_known_fires_and_nobody_else_gets_in(
    guarded: Guarded, tmp_path: Path
) -> None:
    """The group's client and all others trust, show and say the same; errors name what is wrong."""
    known(guarded, "belfry", "stranger")
    allow(guarded, "secure", "belfry", "ANONYMOUS")
    given = guarded.properties("belfry")
    settings = {f"KAFKA__{name.replace('.', '_').upper()}": each for name, each in given.items()}
    with Site(guarded.open, "secure", tmp_path) as site, ThreadPoolExecutor() as beside:
        worker = site.worker(BOOTSTRAP_SERVERS=guarded.secure, **settings).start()
        password = beside.submit(said, guarded, sasl_password="another")
        trust = beside.submit(said, guarded, ssl_ca_pem=signed("another").pem)
        worker.wait_ready()
        due_ms = now_ms() + 500
        site.ask("demo", "one", at=due_ms, payload=b"fired")
        (fired,) = site.wait_fired("demo", 1)
        assert fired.value == b"fired"
        assert fired.timestamp_ms >= due_ms
        assert PASSWORD not in worker.log.read_text()
        stranger = Cluster(guarded.secure, guarded.properties("stranger"))
        with pytest.raises(Unavailable, match=r"does not let this user in|AUTHORIZATION"):
            stranger.partitions(stranger.producer(), site.topic("schedules"))
    assert "no secure connection to it" in password.result()
    assert "Authentication failed" in password.result()
    assert "no secure connection to it" in trust.result()
    assert "certificate" in trust.result()


def written(guarded: Guarded, topic: str, *users: str) -> Producer:
    """A topic of three requests that these users may read, and who writes further ones to it."""
    admin = guarded.admin
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    known(guarded, *users)
    allow(guarded, topic, "ANONYMOUS", *users[:1])
    producer = Producer({"bootstrap.servers": guarded.open})
    for number in range(3):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(20) == 0
    return producer


def values(log: FetchedRequests, count: int) -> list[bytes | None]:
    """So many records that come next."""
    found: list[bytes | None] = []

    def enough() -> bool:
        found.extend(record[3] for record in log.read(100, 0.2))
        return len(found) >= count

    wait_for(f"{count} records", enough, 30)
    return found


def refusal(log: FetchedRequests) -> str:
    """What the reader is told in the end, where it may not read."""

    def told() -> str:
        try:
            assert not log.read(100, 0.2)
        except ConnectionError as error:
            return str(error)
        return ""

    # Not through `seek`: librdkafka, which asks for the ends, would be refused first.
    return wait_for("a refusal", told, 60)


def test_requests_are_read_with_a_password_and_a_certificate_also_after_a_break(
    guarded: Guarded,
) -> None:
    producer = written(guarded, "read.scram", "reader")
    properties = guarded.properties("reader") | {"bootstrap.servers": guarded.secure}
    with closing(FetchedRequests(properties, "read.scram", 0)) as log:
        log.seek(0)
        assert values(log, 3) == [b"0", b"1", b"2"]
        for connection in log.fetcher._feeder._client._client._conns.values():
            connection._writer.transport.abort()
        producer.produce("read.scram", b"3")
        assert producer.flush(20) == 0
        assert values(log, 1) == [b"3"]


def test_requests_are_read_with_a_token(guarded: Guarded) -> None:
    written(guarded, "read.token", "belfry")
    with token_issuer() as address:
        properties = guarded.properties("belfry") | token_properties(address, "belfry")
        properties |= {"bootstrap.servers": guarded.secure}
        with closing(FetchedRequests(properties, "read.token", 0)) as log:
            log.seek(0)
            assert values(log, 3) == [b"0", b"1", b"2"]


def test_a_reader_says_why_it_may_not_read(guarded: Guarded) -> None:
    """A topic without the right to it, a wrong password, an authority that is not believed."""
    written(guarded, "read.denied", "reader", "other")
    name = {"bootstrap.servers": guarded.secure}
    given = {
        "denied": guarded.properties("other") | name,
        "password": guarded.properties("reader") | name | {"sasl.password": "another"},
        "trust": guarded.properties("reader") | name | {"ssl.ca.pem": signed("another").pem},
    }
    with ThreadPoolExecutor() as beside, ExitStack() as opened:
        logs = [
            opened.enter_context(closing(FetchedRequests(each, "read.denied", 0)))
            for each in given.values()
        ]
        denied, password, trust = beside.map(refusal, logs)
    assert "read.denied/0: the brokers do not let this user read it" in denied
    assert "READ and DESCRIBE" in denied
    assert f"{guarded.secure} does not let this worker in" in password
    assert "BELFRY_KAFKA__SASL_" in password
    assert f"no secure connection to {guarded.secure}" in trust
    assert "BELFRY_KAFKA__SSL_" in trust


def test_what_the_page_sets_is_what_clients_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "workers.md").read_text(encoding="utf-8")
    for name, value in re.findall(r"(BELFRY_KAFKA__\w+)=(\S+)", page):
        monkeypatch.setenv(name, value)
    given = Settings().kafka_properties()
    names = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password")
    assert [given[name] for name in names] == ["SASL_SSL", "SCRAM-SHA-512", "belfry", "…"]
    assert given["ssl.ca.location"] == "/etc/belfry/ca.pem"


def test_both_clients_bring_a_token_of_the_same_provider(guarded: Guarded) -> None:
    with token_issuer() as address:
        properties = guarded.properties("belfry") | token_properties(address, "belfry")
        cluster = Cluster(guarded.secure, properties)
        assert cluster.reach(cluster.admin()).brokers
        # aiokafka, as the group's client has it.
        assert ask_brokers({"bootstrap.servers": guarded.secure, **properties})


def _filter(rule: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host,
        rule.operation, rule.permission_type,
    )  # fmt: skip
