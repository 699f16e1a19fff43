"""Clients that nobody polls while they are idle tell no figures, which would pile up in them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from belfry.kafka import fetcher, librdkafka, non_transactional, transactions
from belfry.kafka.partition_log import PartitionLog
from belfry.partitions.tenant_reading import TenantInputReading
from belfry.telemetry.limited import LimitedLogger

TOLD: Final[dict[str, Any]] = {
    "stats_cb": print,
    "statistics.interval.ms": 10_000,
    "client.id": "here",
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The properties of each client of librdkafka that is made."""
    found: list[dict[str, Any]] = []

    def client(properties: dict[str, Any]) -> Any:
        found.append(properties)
        return MagicMock(get_watermark_offsets=lambda *_, **__: (0, 5))

    for kind in ("Producer", "Consumer"):
        monkeypatch.setattr(librdkafka, kind, client)
    return found


def assert_untold(given: dict[str, Any]) -> None:
    """What is given has nothing of figures, and all the rest."""
    assert TOLD.keys() & given.keys() == {"client.id"}


def test_the_producers_of_a_partition_tell_none(made: list[dict[str, Any]]) -> None:
    transactions.PartitionProducer(TOLD, 0, MagicMock())
    non_transactional.NonTransactionalProducer(TOLD, lambda _: 1)
    assert len(made) == 2
    for given in made:
        assert_untold(given)


def test_who_reads_a_changelog_tells_and_who_asks_for_its_end_does_not(
    made: list[dict[str, Any]],
) -> None:
    log = PartitionLog(TOLD, "belfry.changelog", 0)
    assert log.log_end() == 5
    reader, asker = made
    assert reader.items() > TOLD.items()
    assert_untold(asker)


def test_who_asks_for_the_positions_of_tenants_topics_tells_none(
    made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetchers: list[dict[str, Any]] = []
    monkeypatch.setattr(fetcher, "Fetcher", lambda given, _: fetchers.append(given))
    means: Any = SimpleNamespace(
        producer=lambda: SimpleNamespace(group="g"),
        consumer_properties=TOLD,
        clock=SimpleNamespace(monotonic_ms=lambda: 0.0),
    )
    TenantInputReading(0, means, LimitedLogger(MagicMock()))
    (consumer,) = made
    assert_untold(consumer)
    # A client of belfry's own, which tells of each request at once.
    assert fetchers == [TOLD]
