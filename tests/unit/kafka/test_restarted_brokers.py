"""What a broker that stops costs those who ask it, with librdkafka as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from belfry.kafka.log_ends import LogEnds
from tests.unit.kafka.mock_cluster import MockCluster

CLIENTS = 8
# Of 10 s that a question may take; a busy machine has a part of it.
SOON_S = 6.0


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(3) as found:
        found.create("in", 1, 3)
        found.lead("in", 0, 1)
        yield found


def test_where_a_log_ends_is_told_soon_after_its_leader_has_gone(cluster: MockCluster) -> None:
    """A third of librdkafka's clients asks the former leader for as long as it may."""
    properties = {"bootstrap.servers": cluster.servers, "log_level": 0}
    clients = [LogEnds(properties) for _ in range(CLIENTS)]

    def asked_s(client: LogEnds) -> float:
        began = time.monotonic()
        assert client.end("in", 0) == 0
        return time.monotonic() - began

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(asked_s, clients))
        cluster.lead("in", 0, 2)
        cluster.stop(1)
        assert max(threads.map(asked_s, clients)) < SOON_S
    for client in clients:
        client.close()
