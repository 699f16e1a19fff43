"""A second cluster follows, takes over and gives back: each event fires once, on one of the sides.

Two brokers, each a cluster of its own, and the commands of docs/mirror.md. The mirror is killed
amid its work over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from confluent_kafka import Producer

from belfry.devstack import Kafka
from belfry.devstack.child import Child
from belfry.mirror import fencing, taking_over
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import verified
from tests.acceptance.harness.worker import Worker
from tests.integration.mirror_pair import SECRET, Pair, has_topic, ids, names

pytestmark = pytest.mark.slow

DAY_MS: Final = 86_400_000
BATCH: Final = 30
LONG_S: Final = 60.0


@pytest.fixture(scope="module")
def other_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a second cluster."""
    broker = Kafka(tmp_path_factory.mktemp("other") / "kafka", heap_mb=256)
    broker.start()
    broker.wait_ready(180)
    yield broker.bootstrap_servers
    broker.stop()


@pytest.fixture
def pair(
    kafka: str, other_kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[Pair]:
    """Two sites; the second one has its topics, and no worker."""
    found = Pair((kafka, other_kafka), unique("pair"), tmp_path)
    with found.a, found.b:
        assert found.command(found.b, "topics", "create") == 0
        yield found


@pytest.fixture
def active(pair: Pair) -> Worker:
    """A worker of the first side, which fires."""
    return pair.a.worker().start().wait_ready()


def ask(site: Site, batch: int, soon_ms: int) -> None:
    """One-shots that fire soon, some that are cancelled, and some that stay."""
    for each in range(batch * BATCH, (batch + 1) * BATCH):
        at = now_ms() + soon_ms + 40 * (each % BATCH)
        site.ask_soon("shop", f"soon/{each}", at=at, payload=b"%d" % each)
        if each % 3 == 0:
            site.ask_soon("shop", f"stays/{each}", at=at + DAY_MS, payload=b"later")
        if each % 6 == 0:
            site.ask_soon("shop", f"stays/{each}", action="CANCEL")
    site.producer.flush(20)


@pytest.mark.timeout(480)
def test_a_take_over_and_the_way_back_lose_and_double_nothing(
    pair: Pair, active: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair.a, pair.b
    assert pair.command(a, "tenant", "set", "shop", "max_pending=1000", "lifecycle=ALL") == 0
    a.ask("shop", "every", kind="EVERY", interval_ms=500)
    passive = b.worker()
    running = killed_amid_its_work(pair, passive)
    level(pair, b, capsys)
    assert pair.command(b, "mirror", "verify") == 0
    assert not has_topic(b, b.topic("fired.shop"))

    # A producer that still writes to the old side until the fence.
    ask(a, 4, 4_000)
    there = taken_over(pair, running, capsys)
    passive.wait_ready()
    ask(b, 5, 3_000)
    wait_for("its events", lambda: len(b.fired("shop")) > BATCH, LONG_S)
    assert len(a.fired("shop")) == there
    assert pair.command(b, "mirror", "lost") == 0
    assert tenant(pair, b, capsys)["max_pending"] == 1000
    assert_well(b)

    # And back: the old side goes on where it was fenced, with what the other one did.
    assert pair.command(a, "mirror", "run", "--once") == 0
    assert pair.command(a, "mirror", "verify") == 0
    assert pair.command(a, "mirror", "take-over", "--apply") == 0
    active.wait_ready()
    ask(a, 6, 1_000)
    wanted = {f"soon/{each}" for each in range(7 * BATCH)} | {"every"}
    wait_for("all events", lambda: wanted <= names(pair.fired("shop")).keys(), LONG_S)
    a.ask("shop", "every", action="CANCEL", request_id="end")
    assert a.outcome("end")["outcome"] == "CANCELLED"
    fired = pair.fired("shop")
    assert names(fired).keys() == wanted
    assert set(ids(fired).values()) == {1}
    numbers = [int(r.header("belfry-occurrence") or b"") for r in fired if is_every(r)]
    assert sorted(numbers) == list(range(len(numbers)))
    assert len(a.fired("shop")) > there
    follows_once_more(pair, b, capsys)
    assert active.stop() == 0
    passive.kill()
    assert_well(a)


def follows_once_more(pair: Pair, left: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """A side that took over and gave all back says so, and follows again."""
    capsys.readouterr()
    assert pair.command(left, "mirror", "take-over", "--without-source") == 1
    assert "would be refused" in capsys.readouterr().err
    assert [each["what"] for each in status(pair, left, capsys)] == ["given", "given"]
    # As of a mirror that was killed amid its first transaction.
    roll_back(left)
    assert pair.command(left, "mirror", "run", "--once") == 0
    assert pair.command(left, "mirror", "verify") == 0
    assert [each["what"] for each in status(pair, left, capsys)] == ["follows", "follows"]


def roll_back(site: Site) -> None:
    """Leave a transaction that was rolled back at the end of a changelog."""
    given = {"bootstrap.servers": site.bootstrap, "transactional.id": site.topic("rolled-back")}
    producer = Producer(given)
    producer.init_transactions(LONG_S)
    producer.begin_transaction()
    producer.produce(site.topic("changelog"), b"row", b"key", partition=0)
    producer.flush(LONG_S)
    producer.abort_transaction(LONG_S)


def killed_amid_its_work(pair: Pair, passive: Worker) -> Child:
    """A mirror that was killed four times while it carried, and that runs; events have fired."""
    running = pair.mirror(pair.b)
    for killed in range(4):
        ask(pair.a, killed, 8_000)
        running.kill()
        running = pair.mirror(pair.b)
        if not killed:
            follows(pair, pair.b)
            passive.start()
    wait_for("first events", lambda: len(pair.a.fired("shop")) > 5, LONG_S)
    wait_for("the passive side to say why", lambda: "other_cluster" in passive.said(), LONG_S)
    return running


def taken_over(pair: Pair, running: Child, capsys: pytest.CaptureFixture[str]) -> int:
    """Let the other side take over while a mirror runs; how many events the first one fired.

    It is interrupted when one of two partitions is active, and said again.
    """
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taking_over, "activate", interrupted_at(1))
        assert pair.command(pair.b, "mirror", "take-over", "--apply") == 1
    told = capsys.readouterr().out
    assert told.count("fenced in the source") == 2
    assert [each["what"] for each in status(pair, pair.b, capsys)] == ["active", "leaving"]
    assert pair.command(pair.b, "mirror", "take-over", "--apply") == 0
    told += capsys.readouterr().out
    assert told.count("active here") == 2
    assert running.wait(LONG_S)
    assert running.exit_code() == 1
    return len(pair.a.fired("shop"))


def interrupted_at(partition: int) -> Callable[..., str]:
    """What activates partitions, and fails at this one."""

    def activate(writer: Any, target: Any, at: int, *more: Any) -> str:
        if at == partition:
            raise ConnectionError("the test ends this take-over")
        return fencing.activate(writer, target, at, *more)

    return activate


def assert_well(site: Site) -> None:
    """The topics of a side say of one another what the specification asks."""
    run = verified(site, CHANGELOG="required", HTTP_WORKER_SECRET=SECRET)
    assert run.code == 0, run.report
    assert run.report["counts"]["checked"], run.report
    assert run.report["counts"]["elsewhere"], run.report


def is_every(record: Record) -> bool:
    return record.header("belfry-schedule-id") == b"every"


def follows(pair: Pair, site: Site) -> None:
    """Wait until every partition of a side has a mark."""
    wait_for("marks", lambda: has_topic(site, site.topic("mirror")), LONG_S)
    wait_for("marks", lambda: pair.command(site, "mirror", "status") == 0, LONG_S)


def status(pair: Pair, site: Site, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    pair.command(site, "mirror", "status", "-o", "jsonl")
    return [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]


def level(pair: Pair, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Wait until a side is less than some seconds behind."""

    def near() -> bool:
        found = status(pair, site, capsys)
        return all(each["whole"] and each["behind_seconds"] < 3 for each in found)

    wait_for("the mirror to be level", near, LONG_S)


def tenant(pair: Pair, site: Site, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert pair.command(site, "tenant", "get", "shop", "-o", "json") == 0
    found: dict[str, Any] = orjson.loads(capsys.readouterr().out)
    return found


def ahead(records: list[Record]) -> list[Record]:
    """The events of the schedule whose request was carried ahead of its verdict."""
    return [each for each in records if each.header("belfry-schedule-id") == b"ahead"]


@pytest.mark.timeout(480)
def test_what_an_abandoned_side_did_is_listed_and_it_fires_no_more(
    pair: Pair, active: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair.a, pair.b
    at = now_ms() + 8_000
    for each in range(3):
        a.ask("shop", f"carried/{each}", at=at, payload=b"x", request_id=f"c/{each}")
    a.ask("shop", "stays", at=at + DAY_MS, payload=b"x", request_id="stays")
    wait_for("verdicts", lambda: {"stays", "c/2"} <= a.outcomes().keys())
    active.kill()
    assert not has_topic(a, a.topic("fired.shop")) or not a.fired("shop")
    assert pair.command(b, "mirror", "run", "--once") == 0
    # This is carried ahead of its verdict, for nobody judges it yet. It lies at another offset
    # there, behind the transaction of what was carried before.
    a.ask("shop", "ahead", at=at, payload=b"x")
    assert pair.command(b, "mirror", "run", "--once") == 0
    # Nobody carries this.
    a.ask("shop", "unknown", at=at + DAY_MS, payload=b"x")
    a.ask("shop", "at once", at=at, payload=b"x")
    active.start()
    a.wait_fired("shop", 5, LONG_S)
    active.kill()
    capsys.readouterr()
    assert pair.command(b, "mirror", "take-over", "--without-source", "--apply") == 0
    assert "which is all that it had by" in capsys.readouterr().out
    assert pair.command(b, "mirror", "lost", "-o", "jsonl") == 4
    lines = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((each["what"], each["schedule_id"]) for each in lines) == [
        ("fired", "at once"),
        ("lost", "at once"),
        ("lost", "unknown"),
        ("twice", "ahead"),
        *(("twice", f"carried/{each}") for each in range(3)),
    ]
    others = {each["schedule_id"] for each in lines if each.get("same_id") is False}
    assert others == {"ahead"}
    passive = b.worker().start().wait_ready()
    again = b.wait_fired("shop", 4, LONG_S)
    # A consumer that remembers ids takes each once, but for the one whose id is another.
    there = [each for each in a.fired("shop") if names([each]).keys() != {"at once"}]
    assert {each for each in ids(there) if each not in ids(again)} == set(ids(ahead(there)))
    assert names(again) == names(there)

    # The old side comes back: fenced, it fires nothing, and cannot be followed back as it is.
    assert pair.command(b, "mirror", "fence", "--apply") == 0
    a.ask("shop", "late", at=now_ms(), payload=b"x")
    active.start()
    wait_for("the old side to say why", lambda: "other_cluster" in active.said(), LONG_S)
    assert names(a.fired("shop")).keys() == names(again).keys() | {"at once"}
    capsys.readouterr()
    assert pair.command(a, "mirror", "run", "--once") == 1
    assert "not carried when the other one took over" in capsys.readouterr().err
    assert pair.command(a, "mirror", "fence", "--apply") == 1
    assert passive.stop() == 0
