"""Figures pile up in clients that nobody polls: those are not asked, or are polled while idle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from belfry.kafka import fetcher, librdkafka, transactions
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.partitions import steps
from belfry.partitions.standby import Standby
from belfry.partitions.tenant_reading import TenantInputReading
from belfry.telemetry.limited import LimitedLogger
from belfry.transactions.producer import DirectProducer

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


@pytest.mark.parametrize("writer", [transactions.PartitionProducer, DirectProducer])
def test_the_producers_of_a_partition_tell_and_are_polled_while_they_are_idle(
    made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, writer: Any
) -> None:
    clients: list[MagicMock] = []

    def client(properties: dict[str, Any]) -> Any:
        made.append(properties)
        clients.append(MagicMock())
        return clients[-1]

    monkeypatch.setattr(librdkafka, "Producer", client)
    more = {"loop": MagicMock(), "in_turn": 2} if writer is DirectProducer else {}
    producer = writer(TOLD, 0, MagicMock(), **more)
    # That of tenants that are content with at least once is made with their first record.
    producer._non_transactional.send([("fired", b"k", None, b"v", [])])
    assert len(made) == (1 if writer is DirectProducer else 2)
    assert all(TOLD.items() <= given.items() for given in made)
    producer.serve()
    for each in clients:
        each.poll.assert_called_once_with(0)


def test_a_standby_serves_its_producer() -> None:
    opener = MagicMock()
    warm = opener.open_warm.return_value
    warm.changelog.ends.return_value = (0, 0)
    warm.changelog.position = 0
    warm.replay.begun, warm.replay.held = False, (0, 0)
    opener.clock.monotonic_ms.return_value = 1.0
    standby = Standby(0, opener, MagicMock())
    # Two turns, and it is asked to stop.
    reads = iter([lambda: None, standby.ask_to_stop])

    def read(*_: Any) -> list[Any]:
        next(reads)()
        return []

    warm.changelog.read.side_effect = read
    standby._follow()
    assert warm.producer.serve.call_count == 2


def test_an_owner_serves_its_producer_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    given, owned, upkeep = MagicMock(), MagicMock(), MagicMock()
    given.opener.settings = SimpleNamespace(
        batch_records=10, step_bytes=1_000, fire_chunk=10, commit_interval_ms=0
    )
    given.opener.clock.both_ms.return_value = (1.0, 1.0)
    given.opener.clock.monotonic_ms.return_value = 1.0
    upkeep.add_to.return_value, upkeep.longest_s.return_value = None, 1.0
    owned.engine.next_due_ms.return_value = None
    owned.engine.aside.any = False
    owned.source.end = owned.engine.position = 5
    monkeypatch.setattr(steps, "take_aside", lambda *_: None)
    loop: Any = MagicMock(asked=False)
    one = steps.Steps(given, MagicMock(), upkeep, lambda: False, loop)
    for _ in range(2):
        assert list(one.step(owned)) == [1.0]
    assert owned.producer.serve.call_count == 2


def test_who_reads_a_changelog_tells_and_who_asks_for_its_end_does_not(
    made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetchers: list[dict[str, Any]] = []
    monkeypatch.setattr(fetcher, "Fetcher", fetchers.append)
    log = ChangelogReader(TOLD, "belfry.changelog", 0)
    assert log.log_end() == 5
    (asker,) = made
    assert_untold(asker)
    # A client of belfry's own, which tells of each request at once.
    assert fetchers == [TOLD]


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
