"""Workers whose ports speak TLS answer for one another, and take new certificates as they run.

The certificates are those of an authority that the machine does not know.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.api.auth.keys import digest, new_key
from belfry.schedules.identity import Homes
from tests.acceptance.harness.hardened import SecureWorker
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.unit.kafka.test_security import Signed, signed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARTITIONS: Final = 4


class Secured:
    """Two workers with one certificate of an authority of their own."""

    def __init__(self, kafka: str, home: Path) -> None:
        self.home = home
        self.authority = signed("authority")
        self.own = self.certify(self.authority)
        self.key = new_key()
        entry = {"name": "a", "sha256": digest(self.key), "tenants": ["*"], "role": "operate"}
        settings = {
            "HTTP_API_KEYS": json.dumps([entry]),
            "HTTP_WORKER_SECRET": "what all of the workers know",
            "HTTP_TLS_CERTIFICATE": str(home / "tls.crt"),
            "HTTP_TLS_KEY": str(home / "tls.key"),
            "HTTP_TLS_AUTHORITIES": str(home / "ca.crt"),
        }
        self.site = Site(kafka, "https", home, **settings)
        self.site.kind = SecureWorker

    def certify(self, authority: Signed) -> Signed:
        """A new certificate in the workers' files."""
        own = signed("belfry", authority)
        for name, text in (
            ("tls.key", own.key_pem()),
            ("tls.crt", own.pem),
            ("ca.crt", self.authority.pem + authority.pem),
        ):
            (self.home / name).write_text(text)
        return own

    def ask(self, port: int, tenant: str, authority: Signed) -> tuple[int, int]:
        """Status of a look at a tenant's schedule, and the number of the certificate shown."""
        context = ssl.create_default_context(cadata=authority.pem)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        try:
            show = {"authorization": f"Bearer {self.key}"}
            connection.request("GET", f"/v1/tenants/{tenant}/schedules/one", headers=show)
            with connection.getresponse() as answer:
                told: Any = connection.sock.getpeercert()
                return answer.status, int(told["serialNumber"], 16)
        finally:
            connection.close()


@pytest.fixture
def secured(kafka: str, tmp_path: Path) -> Iterator[Secured]:
    found = Secured(kafka, tmp_path)
    with found.site as site:
        site.schedules_topic()
        yield found


def tenants() -> list[str]:
    """One for each partition."""
    homes = Homes(PARTITIONS)
    by_home = {homes.of(name): name for name in (f"t{number}" for number in range(100))}
    assert len(by_home) == PARTITIONS
    return sorted(by_home.values())


def test_workers_believe_each_other_and_take_a_new_certificate(secured: Secured) -> None:
    workers = [secured.site.worker().start() for _ in range(2)]
    for worker in workers:
        worker.wait_ready()
    for tenant in tenants():
        secured.site.ask(tenant, "one", at=now_ms() + 3_600_000)

    def all_answer(authority: Signed, own: Signed) -> bool:
        number = own.certificate.serial_number
        try:
            return all(
                secured.ask(worker.http_port, tenant, authority) == (200, number)
                for worker in workers
                for tenant in tenants()
            )
        except ssl.SSLCertVerificationError:
            return False

    wait_for("all to be told by each", lambda: all_answer(secured.authority, secured.own), 20)
    another = signed("another authority")
    renewed = secured.certify(another)
    wait_for("the new certificate", lambda: all_answer(another, renewed), 20)
    for worker in workers:
        assert "TLS files read again" in worker.log.read_text()
        assert worker.stop() == 0
