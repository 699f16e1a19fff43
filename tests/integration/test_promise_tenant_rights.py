"""Brokers that ask who one is, and for rights.

A tenant whose topic belfry may not write to waits alone; and a worker that shows a certificate and
a password, and trusts one authority, fires with the rights of docs/tenants.md.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import time

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster
from belfry.devstack import Kafka
from belfry.devstack.kafka import Node
from belfry.devstack.ports import free_port
from belfry.settings import Settings
from belfry.worker.broker_features import ask_brokers
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.architecture.tree import ROOT
from tests.integration.test_promise_tenants_apart import (
    fire_each,
    lateness_ms,
    neighbours,
)
from tests.unit.worker.test_security import Signed, signed

pytestmark = pytest.mark.slow

PASSWORD = "hunter2hunter2"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}


@dataclass(frozen=True)
class Guarded:
    """A broker that anybody may ask at one address, and known users by TLS alone at another."""

    open: str
    secure: str
    authority: Signed
    home: Path

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.open})

    def properties(self, user: str) -> dict[str, str]:
        """What a user gives to each client: an authority, a certificate and a password."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.pem": self.authority.pem,
            "ssl.keystore.location": str(self.home / "user.p12"),
            "ssl.keystore.password": PASSWORD,
        }


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A broker of its own with an authorizer; who is not named in a rule may do everything."""
    home = tmp_path_factory.mktemp("guarded")
    authority = signed("authority")
    port, secure, controller = (free_port() for _ in range(3))
    found = Guarded(f"127.0.0.1:{port}", f"127.0.0.1:{secure}", authority, home)
    own, user = signed("broker", authority), signed("user", authority)
    (home / "broker.pem").write_text(own.key_pem() + own.pem + authority.pem)
    (home / "ca.pem").write_text(authority.pem)
    locked = BestAvailableEncryption(PASSWORD.encode())
    store = serialize_key_and_certificates(b"user", user.key, user.certificate, None, locked)
    (home / "user.p12").write_bytes(store)
    properties = {**AUTHORIZER, **listeners(found, controller)}
    node = Node(controller_port=controller)
    broker = Kafka(home / "kafka", port, node=node, properties=properties)
    broker.start()
    try:
        broker.wait_ready(180)
        yield found
    finally:
        broker.stop()


def listeners(guarded: Guarded, controller: int) -> dict[str, str]:
    """A listener that asks for a certificate and a password beside the one that asks nothing."""
    both = f"PLAINTEXT://{guarded.open},SECURE://{guarded.secure}"
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL"
    asked = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        # It takes tokens that nobody signed: what is tested is that clients bring one.
        "oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
        'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
        "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram."
        "ScramLoginModule required;",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(guarded.home / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(guarded.home / "ca.pem"),
    }
    return {
        "listeners": f"{both},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": both,
        "listener.security.protocol.map": protocols,
        **{f"listener.name.secure.{name}": value for name, value in asked.items()},
    }


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
        good = next(neighbours(site, "barred"))
        site.fired_topics(["barred", good])
        worker = site.worker().start().wait_ready()
        first_ms = now_ms() + 3_000
        fire_each(site, "barred", 5, first_ms, 100)
        fire_each(site, good, 20, first_ms, 150)
        admin, topic = guarded.admin, site.topic("fired.barred")
        denied = rules(topic)
        for answer in admin.create_acls(denied).values():
            answer.result(20)
        # While the other one has no right, and may wait for as long as it likes.
        fired = site.wait_fired(good, 20)
        print("late by at most", max(lateness_ms(fired)), "ms")  # noqa: T201  # a figure to be read
        assert min(lateness_ms(fired)) >= 0
        assert len(fired) == 20
        wait_for("the log to say who waits", lambda: "tenant held" in worker.log.read_text())
        assert not site.fired("barred")
        held = [line for line in worker.log.read_text().splitlines() if "tenant held" in line]
        assert all('"barred"' in line and "WRITE" in line for line in held)
        for answer in admin.delete_acls([_filter(each) for each in denied]).values():
            answer.result(20)
        found = site.wait_fired("barred", 5, timeout_s=60)
        assert len({record.value for record in found}) == len(found) == 5


def known(guarded: Guarded, *users: str) -> None:
    """Make users that have a password."""
    kind = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    new: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, kind, PASSWORD.encode()) for user in users
    ]
    admin = guarded.admin
    for answer in admin.alter_user_scram_credentials(new).values():
        answer.result(20)


def allow(guarded: Guarded, prefix: str, *users: str) -> None:
    """The rights of workers on all that begins so, by docs/tenants.md; nobody else has any."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    given = [
        AclBinding(
            kind, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*",
            AclOperation.ALL, AclPermissionType.ALLOW,
        )
        for kind in kinds for user in users
    ]  # fmt: skip
    admin = guarded.admin
    for answer in admin.create_acls(given).values():
        answer.result(20)


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


class Issuer(BaseHTTPRequestHandler):
    """Gives a token for user belfry to who knows the password."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        now_s = int(time())
        claims = {"sub": "belfry", "iat": now_s, "exp": now_s + 300}
        parts = [_url_base64(json.dumps(each)) for each in ({"alg": "none"}, claims)]
        login = b64encode(f"belfry:{PASSWORD}".encode()).decode()
        self.send_response(200 if self.headers["authorization"] == f"Basic {login}" else 401)
        self.send_header("content-type", "application/json")
        self.end_headers()
        told = {"access_token": ".".join((*parts, "")), "expires_in": 300, "token_type": "Bearer"}
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal of the tests."""


def _url_base64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_what_the_page_sets_is_what_clients_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "workers.md").read_text(encoding="utf-8")
    for name, value in re.findall(r"(BELFRY_KAFKA__\w+)=(\S+)", page):
        monkeypatch.setenv(name, value)
    given = Settings().kafka_properties()
    names = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password")
    assert [given[name] for name in names] == ["SASL_SSL", "SCRAM-SHA-512", "belfry", "…"]
    assert given["ssl.ca.location"] == "/etc/belfry/ca.pem"


def test_both_clients_bring_a_token_of_the_same_provider(guarded: Guarded) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Issuer) as issuer:
        Thread(target=issuer.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        properties = guarded.properties("belfry") | {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{issuer.server_port}/token",
            "sasl.oauthbearer.client.id": "belfry",
            "sasl.oauthbearer.client.secret": PASSWORD,
        }
        cluster = Cluster(guarded.secure, properties)
        assert cluster.reach(cluster.admin()).brokers
        # aiokafka, as the group's client has it.
        assert ask_brokers({"bootstrap.servers": guarded.secure, **properties})
        issuer.shutdown()


def _filter(rule: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host,
        rule.operation, rule.permission_type,
    )  # fmt: skip
