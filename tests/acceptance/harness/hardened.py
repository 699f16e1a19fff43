"""A belfry as docs/threat-model.md wants it among tenants that do not trust each other.

TLS, SCRAM and an authorizer that lets nobody do anything unasked on the broker; TLS and API keys on
the HTTP port; no tenants but those with a policy, and all of them sign.  `victim` is the tenant
that has to notice nothing, `mallory` the one that attacks: it has a policy, a secret, a password
for Kafka with the right to write requests, and an API key that is its administrator's.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from belfry.api.auth.keys import digest, new_key
from belfry.devstack.ports import free_port
from belfry.schedules.identity import Homes
from belfry.wire.claims import signature
from tests.acceptance.harness.guarded import Guarded, allow, grant, guarded_broker, known
from tests.acceptance.harness.registry import MisroutedRegistry
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site
from tests.acceptance.harness.worker import Worker
from tests.unit.kafka.test_security import signed

PARTITIONS: Final = 4
# A short wait, so that what is never answered is refused while the attack lasts; and a connection
# takes some 70 kB where it speaks TLS.
USUAL: Final = {"REGISTRY_WAIT_MS": "100", "HTTP_CONNECTIONS": "1000"}
VICTIM, MALLORY = "victim", "mallory"
SECRETS: Final = {VICTIM: b"the victim's secret 0001", MALLORY: b"mallory's secret 0000001"}
CALLERS: Final = {
    "platform": (["*"], "operate"),
    VICTIM: ([VICTIM], "schedule"),
    MALLORY: ([MALLORY], "admin"),
}
Headers = list[tuple[str, str | bytes | None]]


class SecureWorker(Worker):
    """A worker whose API speaks TLS: what the harness asks, it asks at the port for health."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        super().__init__(home, settings)
        self.health_port = free_port()
        self.settings["BELFRY_HEALTH_PORT"] = str(self.health_port)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of the port for health."""
        connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=5)
        try:
            connection.request("GET", path)
            with connection.getresponse() as response:
                return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def refused(self) -> Counter[str]:
        """How many requests this run has refused, by code."""
        found: Counter[str] = Counter()
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith("belfry_rejected_total{"):
                found[line.partition('code="')[2].partition('"')[0]] += int(float(line.split()[-1]))
        return found


class Hardened:
    """The running belfry, and the ways in that each tenant has."""

    def __init__(self, site: Site, guarded: Guarded, registry: MisroutedRegistry) -> None:
        self.site = site
        self.guarded = guarded
        self.registry = registry
        self.keys = {name: new_key() for name in CALLERS}
        # Everything that matters here happens on the partition that the victim lives on.
        self.home = Homes(PARTITIONS).of(VICTIM)
        self.worker = self._worker()

    def _worker(self) -> SecureWorker:
        home = self.site.home
        entries = [
            {"name": name, "sha256": digest(self.keys[name]), "tenants": tenants, "role": role}
            for name, (tenants, role) in CALLERS.items()
        ]
        given = self.guarded.properties("belfry").items()
        settings = {
            **{f"KAFKA__{name.replace('.', '_').upper()}": each for name, each in given},
            "BOOTSTRAP_SERVERS": self.guarded.secure,
            "UNKNOWN_TENANTS": "closed",
            "CLAIMS": "signed",
            "HTTP_WORKER_SECRET": "the workers' secret 0001",
            "SECRETS_DIR": str(home / "secrets"),
            "HTTP_API_KEYS": json.dumps(entries),
            "HTTP_TLS_CERTIFICATE": str(home / "http.pem"),
            "HTTP_TLS_KEY": str(home / "http.key"),
            "SCHEMA_REGISTRY_URL": self.registry.url,
            **USUAL,
        }
        self.site.kind = SecureWorker
        worker = self.site.worker(**settings)
        assert isinstance(worker, SecureWorker)
        return worker

    def start(self) -> None:
        """Start the worker and set the policies of both tenants."""
        self.worker.start().wait_ready()
        for tenant in (VICTIM, MALLORY):
            status, told = self.ask("PUT", f"/v1/tenants/{tenant}", policy_of(tenant))
            assert status == 200, told

    def renew(self, settings: Mapping[str, str]) -> None:
        """The worker anew, with these settings, and nothing that was left in its memory."""
        assert self.worker.stop() == 0
        self.worker.settings.update({f"BELFRY_{name}": each for name, each in settings.items()})
        self.worker.start().wait_ready()

    def connection(self, source: str = "127.0.0.1") -> http.client.HTTPSConnection:
        """A connection of a caller that comes from this address."""
        context = ssl.create_default_context(cadata=self.guarded.authority.pem)
        port = self.worker.http_port
        return http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=30, context=context, source_address=(source, 0)
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        who: str = "platform",
        source: str = "127.0.0.1",
    ) -> tuple[int, Any]:
        """Status and answer of a request of one of `CALLERS`."""
        headers = {"authorization": f"Bearer {self.keys.get(who, who)}"}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            headers["content-type"] = "application/json"
        connection = self.connection(source)
        try:
            connection.request(method, path, data, headers)
            with connection.getresponse() as answer:
                raw = answer.read()
                return answer.status, json.loads(raw) if raw.startswith((b"{", b"[")) else raw
        finally:
            connection.close()

    def producer(self, user: str, **more: Any) -> Producer:
        """A Kafka client of a tenant, with its password and its rights."""
        return Producer(
            {
                "bootstrap.servers": self.guarded.secure,
                **self.guarded.properties(user),
                "log_level": 0,
                "linger.ms": 5,
                **more,
            }
        )

    @property
    def topic(self) -> str:
        """Where requests of all tenants go."""
        return self.site.topic("schedules")


def policy_of(tenant: str) -> dict[str, Any]:
    """A tenant signs; of its outcomes, only refusals are told."""
    return {"signing_secret_ref": f"file:{tenant}.secret"}


def signed_request(tenant: str, schedule_id: str, **fields: Any) -> tuple[bytes, bytes, Headers]:
    """Key, value and headers of a request that its tenant has signed."""
    return sealed(tenant, request(tenant, schedule_id, **fields))


def sealed(tenant: str, value: bytes, *headers: tuple[str, bytes]) -> tuple[bytes, bytes, Headers]:
    """Key, value and headers of a record that its tenant has signed."""
    key = tenant.encode()
    shown = signature(SECRETS[tenant], tenant, key, value, list(headers))
    return key, value, [*headers, ("belfry-signature", shown)]


@contextmanager
def hardened_belfry(home: Path) -> Iterator[Hardened]:
    """All of it, running."""
    strict = {
        "allow_everyone_if_no_acl_found": "false",
        # The tests' own eyes, and the broker's.
        "super_users": "User:admin;User:ANONYMOUS",
    }
    for folder in ("broker", "secrets"):
        (home / folder).mkdir()
    with (
        guarded_broker(home / "broker", **strict) as guarded,
        MisroutedRegistry() as registry,
        Site(guarded.open, "belfry.hardened", home) as site,
    ):
        _certify(home, guarded)
        for tenant, secret in SECRETS.items():
            (home / "secrets" / f"{tenant}.secret").write_bytes(secret)
        _give_rights(guarded, site)
        site.schedules_topic()
        site.fired_topics([VICTIM, MALLORY])
        found = Hardened(site, guarded, registry)
        found.start()
        yield found


def _certify(home: Path, guarded: Guarded) -> None:
    port = signed("belfry", guarded.authority)
    (home / "http.pem").write_text(port.pem + guarded.authority.pem)
    (home / "http.key").write_text(port.key_pem())


def _give_rights(guarded: Guarded, site: Site) -> None:
    """As docs/tenants.md says."""
    known(guarded, "belfry", VICTIM, MALLORY)
    allow(guarded, "belfry", "belfry")
    for tenant in (VICTIM, MALLORY):
        write = AclOperation.WRITE
        own = site.topic(f"schedules.{tenant}")
        grant(guarded, tenant, {site.topic("schedules"): write, own: write})
        grant(guarded, tenant, {site.topic(f"fired.{tenant}"): AclOperation.READ})
    cluster, literal = ResourceType.BROKER, ResourcePatternType.LITERAL
    given = [
        AclBinding(
            cluster, "kafka-cluster", literal, "User:belfry", "*", each, AclPermissionType.ALLOW
        )
        for each in (AclOperation.DESCRIBE, AclOperation.IDEMPOTENT_WRITE)
    ]
    admin = guarded.admin
    for answer in admin.create_acls(given).values():
        answer.result(20)
