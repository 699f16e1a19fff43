"""The broker forgets transactional ids that were not used for long: every event fires once.

`transactional.id.expiration.ms` is seven days unless somebody sets it lower; here it is four
seconds. Whoever writes with a forgotten id is refused, and takes its partition over anew. It does
not go on with what it remembers, because a successor may have fired meanwhile and be forgotten too:

    0 s    one    takes `first` and `second` in, and sleeps
    8 s    other  has taken over, fires `first`, and dies
    14 s          the ids are forgotten, so nothing says that there was a successor
    14 s   one    wakes: its memory holds `first`
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from aiokafka.client import AIOKafkaClient

from belfry.devstack import Kafka
from belfry.kafka.transaction_requests import ListTransactions
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FORGETS: Final = {
    "transactional.id.expiration.ms": "4000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
    "producer.id.expiration.ms": "4000",
    "producer.id.expiration.check.interval.ms": "500",
}
# After so many seconds without a transaction nothing is known of an id.
FORGOTTEN_S: Final = 6.0
# A commit so long after a take-over proves the ownership for as long again
# (`partitions/upkeep.py`).
YOUNG_S: Final = 15.0
# A take-over on a busy machine, and what was late anyway.
LATE_MS: Final = 10_000
WRITERS: Final = {
    "two ids in turn": {"TRANSACTION_WRITER": "direct", "TRANSACTIONAL_IDS": "2"},
    "librdkafka": {"TRANSACTION_WRITER": "librdkafka"},
}


@contextmanager
def site_of(broker: str, name: str, home: Path, writer: str) -> Iterator[Site]:
    """A site of one partition whose worker writes so."""
    with Site(broker, name, home, **WRITERS[writer], CLUSTER__PARTITIONS="1") as site:
        site.schedules_topic(1)
        yield site


def fired_ids(site: Site, *ids: str) -> list[bytes]:
    """The schedules of what fired, in order."""
    return [each.header("belfry-schedule-id") or b"" for each in fired_of(site, *ids)]


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that forgets ids within seconds."""
    broker = Kafka(tmp_path_factory.mktemp("forgetful"), properties=FORGETS)
    broker.start()
    try:
        broker.wait_ready(120)
        yield broker.bootstrap_servers
    finally:
        broker.stop()


async def known_ids(bootstrap: str) -> set[str]:
    """The transactional ids that the one broker knows."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    try:
        await client.bootstrap()
        (broker,) = client.cluster.brokers()
        listed = await client.send(broker.nodeId, ListTransactions([]))
        return {name for name, *_ in listed.transactions}
    finally:
        await client.close()


def all_forgotten(site: Site) -> bool:
    """Whether the broker knows none of a site's ids."""
    return not any(each.startswith(site.name) for each in asyncio.run(known_ids(site.bootstrap)))


def fired_of(site: Site, *ids: str) -> list[Record]:
    """The fired records of these schedules."""
    wanted = {each.encode() for each in ids}
    return [each for each in site.fired("demo") if each.header("belfry-schedule-id") in wanted]


# A writer of belfry's own takes over anew at each refusal that it does not know; the other test
# shows that of both.
@pytest.mark.parametrize("writer", ["librdkafka"])
def test_who_has_nothing_to_do_for_long_fires_once_and_hardly_late(
    forgetful: str, tmp_path: Path, unique: Callable[[str], str], writer: str
) -> None:
    with site_of(forgetful, unique("idle"), tmp_path, writer) as site:
        site.fired_topics(["demo"])
        worker = site.worker().start().wait_ready()
        time.sleep(YOUNG_S)
        first_ms = now_ms() + int(1_000 * FORGOTTEN_S) + 1_500
        due = {"first": first_ms, "second": first_ms + int(1_000 * FORGOTTEN_S) + LATE_MS}
        for name, at_ms in due.items():
            site.ask("demo", name, at=at_ms, payload=b"x")
        site.wait_fired("demo", 2, 60.0)
        time.sleep(1.0)
        assert fired_ids(site, *due) == [b"first", b"second"]
        for record, at_ms in zip(fired_of(site, *due), due.values(), strict=True):
            assert 0 <= record.timestamp_ms - at_ms < LATE_MS
        assert "taking over anew" in worker.log.read_text(), "no id was forgotten"
        assert worker.stop() == 0


@pytest.mark.parametrize("writer", WRITERS)
def test_who_wakes_when_the_ids_of_its_successor_are_forgotten_fires_nothing_again(
    forgetful: str, tmp_path: Path, unique: Callable[[str], str], writer: str
) -> None:
    with site_of(forgetful, unique("woken"), tmp_path, writer) as site:
        site.fired_topics(["demo"])
        one = site.worker().start().wait_ready()
        first_ms = now_ms() + 8_000
        due = {"first": first_ms, "second": first_ms + 20_000}
        for name, at_ms in due.items():
            site.ask("demo", name, request_id=name, at=at_ms, payload=b"x")
        for name in due:
            site.outcome(name)
        one.signal(signal.SIGSTOP)
        other = site.worker().start()
        site.wait_fired("demo", 1, 60.0)
        other.kill()
        wait_for("its ids to be forgotten", lambda: all_forgotten(site), 60)
        one.signal(signal.SIGCONT)
        site.wait_fired("demo", 2, 60.0)
        time.sleep(3.0)
        assert fired_ids(site, *due) == [b"first", b"second"]
        assert one.stop() == 0
