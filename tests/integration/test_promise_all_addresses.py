"""A worker on all addresses, as in a pod: others can call it, probes are answered, it ends in time.

The other workers learn from the group under which address each is called.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from belfry.api.auth.keys import digest, new_key
from belfry.devstack import Stack, free_port
from tests.acceptance.harness.site import Site

pytestmark = pytest.mark.slow

# What deploy/helm/belfry grants, less the pause before the signal.
GRACE_S: Final = 30.0


@pytest.fixture
def site(stack: Stack, tmp_path: Path) -> Iterator[Site]:
    with Site(stack.bootstrap_servers, "everywhere", tmp_path) as found:
        found.schedules_topic()
        yield found


def status(port: int, path: str, host: str) -> int:
    """The answer to a caller who names this host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"host": host})
        return connection.getresponse().status
    finally:
        connection.close()


def advertised(app_id: str, servers: str) -> list[str]:
    """The addresses that the members of the group tell one another."""
    admin = AdminClient({"bootstrap.servers": servers})
    (answer,) = admin.describe_consumer_groups([app_id]).values()
    return [member.client_id.partition("@")[2] for member in answer.result(20).members]


def test_a_pod_is_called_probed_and_ends_within_its_grace(site: Site, stack: Stack) -> None:
    health = free_port()
    key = f'[{{"name": "a", "sha256": "{digest(new_key())}", "tenants": ["*"], "role": "operate"}}]'
    settings = {
        "HTTP_HOST": "0.0.0.0",
        "HEALTH_HOST": "0.0.0.0",
        "HEALTH_PORT": str(health),
        "HTTP_API_KEYS": key,
        "HTTP_PLAINTEXT": "allowed",
    }
    worker = site.worker(**settings).start().wait_ready()
    # The brokers are on this machine, so the other workers are as well.
    app_id = worker.settings["BELFRY_CLUSTER__APP_ID"]
    assert advertised(app_id, stack.bootstrap_servers) == [f"http://127.0.0.1:{worker.http_port}"]
    for path in ("/healthz/startup", "/healthz/ready", "/healthz/live", "/metrics"):
        assert status(health, path, "10.244.1.7:9700") == 200
    began = monotonic()
    assert worker.stop(GRACE_S) == 0
    print(f"ended after {monotonic() - began:.1f} s")  # noqa: T201  # a figure to be read
