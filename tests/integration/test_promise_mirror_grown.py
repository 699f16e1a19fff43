"""A source grows from 2 partitions to 4 and its key groups move, while a second cluster follows.

The second one takes over in the middle of that: with the source, and without it while it goes on
behind the mirror's back. What is lost or comes twice then is what `belfry mirror lost` lists.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.devstack import Kafka
from belfry.placement.key_groups import KeyGroups
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import verified
from tests.acceptance.harness.worker import Worker
from tests.integration.mirror_pair import SECRET, Pair, has_topic, ids, names

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

HOMES, GROWN = 2, 4
LONG_S: Final = 120.0
# Offsets of a changelog in which groups have come.
MOVED: Final = 60
TENANTS: Final = tuple(f"t-{number}" for number in range(6))
GROUPS: Final = KeyGroups(HOMES)
# How long events wait, ms: some fire while groups move, and some behind a take-over.
WAITS_MS: Final = (600, 1_500, 3_000, 20_000)


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
    """Two sites whose groups may move; the second one has its topics, and no worker."""
    found = Pair((kafka, other_kafka), unique("grows"), tmp_path, KEY_GROUP_MOVES="true")
    with found.a, found.b:
        assert found.command(found.b, "topics", "create") == 0
        for site in (found.a, found.b):
            site.fired_topics(TENANTS)
        yield found


class Load:
    """Requests of all tenants, some a second, and what each of them asked for."""

    def __init__(self, site: Site, prefix: str = "") -> None:
        self.due_ms: dict[str, int] = {}
        self._prefix = prefix
        self._site = site
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ask for nothing more; all that was asked for was written."""
        self._stopping.set()
        self._thread.join()
        assert self._site.producer.flush(20) == 0

    def _run(self) -> None:
        while not self._stopping.wait(0.04):
            number = len(self.due_ms)
            tenant = TENANTS[number % len(TENANTS)]
            name, at = (
                f"{self._prefix}{tenant}.{number}",
                now_ms() + WAITS_MS[number % len(WAITS_MS)],
            )
            self.due_ms[name] = at
            self._site.ask_soon(tenant, name, at=at, payload=b"x")


def posted(worker: Worker, group: int, target: int) -> bool:
    """Ask for a move of a group; whether nothing stands against it."""
    url = f"http://127.0.0.1:{worker.http_port}/v1/key-groups/{group}/move"
    body, kind = json.dumps({"target": target}).encode(), {"content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, kind), timeout=10):
            return True
    except (OSError, urllib.error.HTTPError):
        return False


@contextmanager
def moving(worker: Worker) -> Iterator[Counter[int]]:
    """Within it, groups move over all partitions; how many moves were asked for, by target."""
    asked, stopping = Counter[int](), threading.Event()

    def run() -> None:
        number = 0
        while not stopping.wait(0.05):
            tenant, target = TENANTS[number % len(TENANTS)], (2 + number // 2) % GROWN
            asked[target] += posted(worker, GROUPS.of(tenant), target)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield asked
    finally:
        stopping.set()
        thread.join()


def partitions(site: Site, *kinds: str) -> list[int]:
    topics = AdminClient({"bootstrap.servers": site.bootstrap}).list_topics(timeout=10).topics
    found = (topics.get(site.topic(kind)) for kind in kinds)
    return [0 if each is None else len(each.partitions) for each in found]


def ends(site: Site, *partitions: int) -> list[int]:
    """Where partitions of the changelog end."""
    properties = {"bootstrap.servers": site.bootstrap, "group.id": "looks"}
    with closing(Consumer(properties)) as consumer:
        places = [TopicPartition(site.topic("changelog"), each) for each in partitions]
        return [consumer.get_watermark_offsets(each, timeout=10)[1] for each in places]


def lies(worker: Worker) -> dict[int, dict[str, Any]]:
    """Where groups lie that are not at home, as workers say."""
    code, body = worker.get("/v1/key-groups")
    assert code == 200, body
    return {each["group"]: each for each in json.loads(body)["key_groups"]}


def at_rest(worker: Worker) -> bool:
    return all(each["state"] == "rests" for each in lies(worker).values())


def fired(site: Site) -> list[Record]:
    return site.fired(*TENANTS)


def grown(pair: Pair, site: Site) -> None:
    """Give a side more partitions."""
    limit = ("--limit", f"{LONG_S:g}", "--yes")
    assert pair.command(site, "rebalance", "grow", "--partitions", f"{GROWN}", *limit) == 0


def followed(site: Site) -> bool:
    kinds = ("homes", "mirror", "changelog", "schedules")
    return partitions(site, *kinds) == [HOMES, GROWN, GROWN, GROWN]


def assert_not_early(load: Load, records: list[Record]) -> None:
    early = [each for each in records if each.timestamp_ms < load.due_ms[next(iter(names([each])))]]
    assert not early


def assert_well(site: Site) -> None:
    run = verified(site, CHANGELOG="required", HTTP_WORKER_SECRET=SECRET)
    assert run.code == 0, run.report


def listed(lines: list[dict[str, Any]], what: str) -> set[str]:
    """The schedules that such lines name; a request that a group be moved names none."""
    return {each["schedule_id"] for each in lines if each["what"] == what} - {""}


def told_of(lines: list[dict[str, Any]], names: set[str], there: set[str], here: set[str]) -> str:
    """Where schedules fired, and what is listed of each; a line for one."""
    found = [f"{len(names)} schedules:"]
    for name in sorted(names):
        told = [each for each in lines if each.get("schedule_id") == name]
        found.append(f"{name}: there {name in there}, here {name in here}, listed {told}")
    return "\n".join(found)


def assert_moves_on(worker: Worker) -> None:
    """Groups rest, and one that came by a move goes on by another."""
    wait_for("groups to rest", lambda: at_rest(worker), LONG_S)
    group, there = next((group, each["lies"]) for group, each in lies(worker).items())
    target = 2 if there == 3 else 3
    wait_for("a move", lambda: posted(worker, group, target), LONG_S)

    def came() -> bool:
        stands = lies(worker)[group]
        return (stands["lies"], stands["state"]) == (target, "rests")

    wait_for("the group to move", came, LONG_S)


def left_behind(pair: Pair) -> tuple[Load, Worker]:
    """A source that grew, moved groups, and went on for a second without its mirror; what was asked
    for there, and a worker of the other side.
    """
    a, b = pair.a, pair.b
    active = a.worker().start().wait_ready(LONG_S)
    running = pair.mirror(b)
    with Load(a) as load:
        wait_for("marks", lambda: has_topic(b, b.topic("mirror")), LONG_S)
        wait_for("marks", lambda: pair.command(b, "mirror", "status") == 0, LONG_S)
        # A side that waits has a worker, which takes nothing that is added for its own.
        passive = b.worker().start()
        grown(pair, a)
        with moving(active) as asked:
            wait_for("moves to what was added", lambda: asked[2] > 2 and asked[3] > 2, LONG_S)
            wait_for("the target to grow", lambda: followed(b), LONG_S)
            wait_for("moves to be carried", lambda: min(ends(b, 2, 3)) > MOVED, LONG_S)
            running.kill()
            # The source goes on, and nobody carries it.
            time.sleep(1.0)
            active.kill()
        load.stop()
    return load, passive


def test_a_take_over_amid_growth_loses_what_it_lists(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair.a, pair.b
    load, passive = left_behind(pair)
    capsys.readouterr()
    assert pair.command(b, "mirror", "verify") == 0, capsys.readouterr().out
    over = ("mirror", "take-over", "--without-source", "--apply")
    wait_for("the take-over", lambda: pair.command(b, *over) == 0, LONG_S)
    # What was added to the source is fenced as well. What its workers left open is rolled back by
    # that, which hides what lies behind it before.
    capsys.readouterr()
    assert pair.command(b, "mirror", "fence", "--apply") == 0
    assert capsys.readouterr().out.count("fenced in the source") == GROWN
    assert pair.command(b, "mirror", "lost", "-o", "jsonl") == 4
    lines = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    passive.wait_ready(LONG_S)

    lost, twice, gone = (listed(lines, what) for what in ("lost", "twice", "fired"))
    assert {each["what"] for each in lines} <= {"lost", "twice", "fired"}, lines
    there = set(names(fired(a)))
    wanted = load.due_ms.keys() - lost - (there - twice)
    with suppress(AssertionError):
        # What has not come by then is told below, with what is listed of it.
        wait_for("the rest", lambda: wanted <= names(fired(b)).keys(), LONG_S)
    assert_moves_on(passive)
    here = names(fired(b))
    both_sides = here.keys() & there
    odd = (here.keys() ^ wanted) | (both_sides ^ twice) | (gone ^ (there & lost))
    assert not odd, told_of(lines, odd, there, set(here))
    assert set(here.values()) == {1} == set(names(fired(a)).values())
    assert_not_early(load, fired(b))
    # Where the list says so, consumers that remember ids take each once.
    same = {each["schedule_id"] for each in lines if each.get("same_id")}
    both = ids([each for each in fired(a) + fired(b) if next(iter(names([each]))) in same])
    assert set(both.values()) <= {2}
    assert_well(b)
    assert passive.stop() == 0


def test_a_take_over_with_the_source_and_the_way_back_lose_nothing(pair: Pair) -> None:
    a, b = pair.a, pair.b
    active = a.worker().start().wait_ready(LONG_S)
    with Load(a) as load:
        running = pair.mirror(b)
        wait_for("marks", lambda: has_topic(b, b.topic("mirror")), LONG_S)
        grown(pair, a)
        with moving(active) as asked:
            wait_for("moves to what was added", lambda: asked[2] > 2 and asked[3] > 2, LONG_S)
            load.stop()
            assert pair.command(b, "mirror", "take-over", "--apply") == 0
    running.kill()
    passive = b.worker().start().wait_ready(LONG_S)
    assert_moves_on(passive)
    with Load(b, "later-") as more, moving(passive):
        time.sleep(1.0)
        more.stop()
        # And back. A worker that looks whose a partition is may fence a mirror that is told to end.
        wait_for("the way back", lambda: pair.command(a, "mirror", "run", "--once") == 0, LONG_S)
        assert pair.command(a, "mirror", "verify") == 0
        assert pair.command(a, "mirror", "take-over", "--apply") == 0
    active.wait_ready(LONG_S)
    wanted = load.due_ms.keys() | more.due_ms.keys()
    wait_for("all events", lambda: len(fired(a)) + len(fired(b)) >= len(wanted), LONG_S)
    assert_moves_on(active)
    records = fired(a) + fired(b)
    assert names(records) == Counter(wanted)
    assert set(ids(records).values()) == {1}
    load.due_ms |= more.due_ms
    assert_not_early(load, records)
    assert active.stop() == 0
    passive.kill()
    assert_well(a)
