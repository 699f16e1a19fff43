"""A watch on transactions that stay open: what it takes for one, and whom it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from belfry.engine.forward import TenantInput
from belfry.engine.reports import SourcePartition
from belfry.kafka import offset_client, open_transactions
from belfry.kafka.fetch_position import Where
from belfry.kafka.holders import OpenTransaction, Untold
from belfry.kafka.log_ends import LogEnds
from belfry.partitions import other_places, transaction_watch, watched_places
from belfry.partitions.transaction_watch import TransactionWatch
from belfry.partitions.watched_places import OutputRounds, WatchedPlaces
from belfry.placement.partition_count import PartitionCount
from belfry.schedules.identity import Homes
from belfry.settings import Settings

SCHEDULES: Where = ("belfry.schedules", 1)
CHANGELOG: Where = ("belfry.changelog", 1)
STRANGER = OpenTransaction(*SCHEDULES, 17, 9, 3, 0, "outbox-1", "Ongoing", 40_000, 600_000)
HOMES = 4
INPUT = SourcePartition("belfry.schedules.ash", 3, Homes(HOMES))


class Cluster:
    """Where partitions end, for whom, and who has a transaction open; all of it may change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ends: dict[Where, tuple[int, int]] = {}
        self.open: list[OpenTransaction] = []
        self.asked: list[Where] = []
        self.gone: set[str] = set()
        self.denied: set[str] = set()
        self.away = self.mute = False
        self.asks: Callable[[], None] = lambda: None
        self.partitions: dict[int, None] = {0: None}
        self.shown: dict[tuple[str, int], float] = {}
        monkeypatch.setattr(offset_client, "OffsetClient", self._client)
        monkeypatch.setattr(open_transactions, "look_up", self._holders)
        clock: Any = SimpleNamespace(wall_ms=lambda: 100_000.0)
        metrics: Any = SimpleNamespace(open_transactions=self._show)
        ends, counted = LogEnds({}), PartitionCount(HOMES)
        lives: Any = lambda home: [TenantInput(INPUT, "ash")] if home == 1 else []  # noqa: E731
        self.outputs: dict[str, int] = {}
        places = WatchedPlaces(Settings(), counted, lives, ends, lambda: self.outputs)
        self.watch = TransactionWatch(Settings(), places, clock, metrics, ends)

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.watch._look()

    def _show(self, ages_s: dict[tuple[str, int], float]) -> None:
        self.shown = ages_s

    def _holders(self, _: object, places: list[Where]) -> list[OpenTransaction]:
        self.asks()
        if self.mute:
            raise Untold("error 29")
        return [each for each in self.open if (each.topic, each.partition) in places]

    def _client(self, properties: dict[str, Any]) -> Any:
        committed = properties["isolation.level"] == "read_committed"

        def ends(place: TopicPartition, *_: object, **__: object) -> tuple[int, int]:
            if self.away or place.topic in self.gone:
                raise KafkaException(KafkaError(KafkaError._TRANSPORT))
            self.asked.append((str(place.topic), place.partition))
            end, stable = self.ends.get(self.asked[-1], (5, 5))
            return 0, stable if committed else end

        def all_ends(places: list[TopicPartition], _wait_s: float) -> list[TopicPartition]:
            assert {place.offset for place in places} <= {OFFSET_END}
            found = [(place, ends(place)[1]) for place in places]
            return [TopicPartition(place.topic, place.partition, end) for place, end in found]

        def topics(topic: str, *_: object) -> SimpleNamespace:
            if topic in self.denied:
                raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
            tenants = SimpleNamespace(partitions=dict(self.partitions))
            several = SimpleNamespace(partitions={0: None, 1: None})
            names = ("deliveries", "lifecycle", "rejected", "undelivered")
            found = {"belfry.tenants": tenants, **{f"belfry.{name}": several for name in names}}
            return SimpleNamespace(topics=found)

        return SimpleNamespace(
            get_watermark_offsets=ends,
            offsets_for_times=all_ends,
            list_topics=topics,
            close=lambda: None,
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster(monkeypatch)
    found.watch.follow(1)
    return found


def test_one_that_stays_is_told_and_named(cluster: Cluster) -> None:
    cluster.ends[SCHEDULES], cluster.open = (30, 17), [STRANGER]
    cluster.look(1)
    assert not cluster.shown
    cluster.look(1)
    assert cluster.shown == {("schedules", 1): 60.0}
    assert cluster.watch.stranger(1) == STRANGER
    assert cluster.watch.stranger(0) is None
    cluster.ends[SCHEDULES], cluster.open = (30, 30), []
    cluster.look(1)
    assert not cluster.shown
    assert cluster.watch.stranger(1) is None


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        *[("schedules.ash", 3), ("deliveries", 1), ("tenants", 0)],
        *[("lifecycle", 1), ("rejected", 0), ("undelivered", 1), ("fired.ash", 2)],
    ],
)
def test_so_is_one_where_others_write(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, topic: str, partition: int
) -> None:
    place = f"belfry.{topic}", partition
    cluster.outputs = {"belfry.fired.ash": 3}
    cluster.ends[place] = (30, 17)
    cluster.open = [replace(STRANGER, topic=place[0], partition=partition)]
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    with capture_logs() as lines:
        cluster.look()
    assert cluster.shown == {(topic, partition): 60.0}
    assert [f"belfry.{topic}/{partition}:" in each["event"] for each in lines] == [True]
    assert cluster.watch.stranger(1) is None


def test_a_tenants_topic_that_is_gone_keeps_nothing_else_from_being_seen(
    cluster: Cluster,
) -> None:
    cluster.gone.add(INPUT.topic)
    cluster.ends[SCHEDULES], cluster.open = (30, 17), [STRANGER]
    with capture_logs() as lines:
        cluster.look()
    assert cluster.watch.stranger(1) == STRANGER
    assert "tenants' topics" in lines[0]["event"]


def test_a_tenants_topic_that_is_gone_hides_no_deliveries_either(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.gone.add(INPUT.topic)
    place = "belfry.deliveries", 1
    cluster.ends[place] = (30, 17)
    cluster.open = [replace(STRANGER, topic=place[0], partition=place[1])]
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    cluster.look()
    assert cluster.shown == {("deliveries", 1): 60.0}


def test_what_answers_does_not_wait_for_a_topic_that_failed_before(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.gone.add("belfry.deliveries")
    cluster.ends[INPUT.topic, INPUT.partition] = (30, 17)
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    cluster.look(1)
    # From now on there is time for three topics, verdicts and refusals among them.
    times = iter([0.0, 0.0, 0.0, 0.0, other_places.ALONE_S])
    clock = SimpleNamespace(monotonic=lambda: next(times))
    monkeypatch.setattr(other_places, "machine", clock)
    cluster.look(1)
    assert cluster.watch._others.stable == {(INPUT.topic, INPUT.partition): 17}


def test_topics_of_tenants_that_live_elsewhere_are_left_to_others(cluster: Cluster) -> None:
    cluster.watch.forget(1)
    cluster.look()
    assert INPUT.topic not in {topic for topic, _ in cluster.asked}


def test_readers_that_come_on_are_held_back_by_nobody(cluster: Cluster) -> None:
    cluster.open = [STRANGER]
    for stable in (17, 18, 19):
        cluster.ends[SCHEDULES] = (30, stable)
        cluster.look(1)
        assert not cluster.shown


@pytest.mark.parametrize(("state", "told"), [("Ongoing", False), ("Empty", True)])
def test_belfrys_own_count_when_nobody_will_end_them(
    cluster: Cluster, state: str, told: bool
) -> None:
    own = replace(STRANGER, topic=CHANGELOG[0], transactional_id="belfry.1", state=state)
    cluster.ends[CHANGELOG], cluster.open = (30, 17), [own]
    cluster.look()
    assert bool(cluster.shown) is told
    assert cluster.watch.stranger(1) is None


def test_brokers_that_name_nobody_are_told_of_too(cluster: Cluster) -> None:
    cluster.ends["belfry.tenants", 0], cluster.mute = (30, 17), True
    cluster.look()
    assert cluster.shown == {("tenants", 0): 0.0}


def test_what_a_take_over_is_to_know_is_looked_for_after_it_began(cluster: Cluster) -> None:
    cluster.ends[SCHEDULES], cluster.open = (30, 17), [STRANGER]
    cluster.look()
    cluster.watch.follow(1)
    assert cluster.watch.stranger(1) is None


def test_a_look_that_began_before_a_take_over_tells_it_nothing(cluster: Cluster) -> None:
    cluster.ends[SCHEDULES], cluster.open = (30, 17), [STRANGER]
    cluster.look(1)
    cluster.asks = lambda: cluster.watch.follow(1)
    cluster.look(1)
    assert cluster.watch.stranger(1) is None
    cluster.asks = lambda: None
    cluster.look(1)
    assert cluster.watch.stranger(1) == STRANGER


def test_only_partitions_of_this_worker_are_asked_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    cluster.watch.follow(HOMES + 3)
    cluster.look(1)
    added = ("belfry.schedules", HOMES + 3)
    several = ("deliveries", "lifecycle", "rejected", "undelivered")
    shared = {(f"belfry.{name}", each) for name in several for each in (0, 1)}
    shared.add(("belfry.tenants", 0))
    own = (INPUT.topic, INPUT.partition)
    assert set(cluster.asked) == {SCHEDULES, CHANGELOG, added, own, *shared}
    cluster.asked.clear()
    cluster.watch.forget(1)
    cluster.look(1)
    assert set(cluster.asked) == {added, *shared}


def test_a_topic_that_this_worker_may_not_see_is_left_out_in_silence(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.denied.add("belfry.undelivered")
    place = "belfry.rejected", 1
    cluster.ends[place] = (30, 17)
    cluster.open = [replace(STRANGER, topic=place[0], partition=place[1])]
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    with capture_logs() as lines:
        cluster.look()
    assert cluster.shown == {("rejected", 1): 60.0}
    assert ["rejected/1" in each["event"] for each in lines] == [True]


def test_a_topic_of_events_that_is_gone_keeps_nothing_else_from_being_seen(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.outputs = {f"belfry.fired.t{number}": 3 for number in range(100)}
    cluster.gone.add("belfry.fired.t99")
    place = INPUT.topic, INPUT.partition
    cluster.ends[place] = (30, 17)
    cluster.open = [replace(STRANGER, topic=place[0], partition=place[1])]
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    # No topic is asked about alone: that would be hundreds of questions.
    monkeypatch.setattr(other_places, "machine", None)
    for home in range(HOMES):
        cluster.watch.follow(home)
    with capture_logs() as lines:
        cluster.look(1)
        assert not lines
        cluster.look(1)
    assert cluster.shown == {("schedules.ash", 3): 60.0}
    assert [each.get("topic") for each in lines] == ["output topics", None]


def test_one_that_hangs_in_a_topic_of_events_is_named_at_the_next_look_whose_turn_it_may_be(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in range(HOMES):
        cluster.watch.follow(home)
    cluster.outputs = {f"belfry.fired.{name}": 1 for name in "abcdef"}
    cluster.ends["belfry.fired.a", 0] = (30, 17)
    cluster.open = [replace(STRANGER, topic="belfry.fired.a", partition=0)]
    monkeypatch.setattr(watched_places, "MOST_OUTPUTS", 2)
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    cluster.look()
    assert cluster.shown == {("fired.a", 0): 60.0}


def test_of_hundreds_that_hang_in_topics_of_events_some_are_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.outputs = {"belfry.fired": 300}
    cluster.open = [
        replace(STRANGER, topic="belfry.fired", partition=number) for number in range(300)
    ]
    for home in range(HOMES):
        cluster.watch.follow(home)
    cluster.ends |= {("belfry.fired", number): (30, 17) for number in range(300)}
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    with capture_logs() as lines:
        cluster.look()
    assert len(cluster.shown) == other_places.MOST_NAMED
    many = [each for each in lines if "are named" in each["event"]]
    assert [each["partitions"] for each in many] == [300]


def test_those_who_name_nobody_in_time_keep_no_take_over_waiting(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    asked: list[Where] = []

    def slow(_: object, places: list[Where]) -> list[OpenTransaction]:
        asked.extend(places)
        now_s[0] += open_transactions.ASK_S
        raise Untold("no answer")

    clock = SimpleNamespace(monotonic=lambda: now_s[0])
    monkeypatch.setattr(transaction_watch, "machine", clock)
    monkeypatch.setattr(open_transactions, "look_up", slow)
    monkeypatch.setattr(transaction_watch, "LOOK_S", 0.0)
    others = [("belfry.deliveries", 0), ("belfry.lifecycle", 0), ("belfry.rejected", 0)]
    cluster.ends |= dict.fromkeys([CHANGELOG, *others], (30, 17))
    cluster.look()
    assert asked == [CHANGELOG, others[0]]
    assert len(cluster.shown) == 4


def test_of_all_workers_one_looks_at_a_topic_of_events() -> None:
    known = {f"belfry.fired.t{number}": 2 for number in range(40)}
    rounds = [OutputRounds("belfry.fired", lambda: known) for _ in range(HOMES)]
    looked = [place for home, each in enumerate(rounds) for place in each.next([home], HOMES, [])]
    assert sorted(looked) == sorted((topic, each) for topic in known for each in (0, 1))


def test_topics_that_policies_name_are_left_to_those_who_share_them() -> None:
    known = {"belfry.fired": 1, "belfry.fired.ash": 1, "shop.orders": 1, "belfry.firedmore": 1}
    found = OutputRounds("belfry.fired", lambda: known).next([*range(HOMES)], HOMES, [])
    assert found == [("belfry.fired", 0), ("belfry.fired.ash", 0)]


def test_topics_of_events_have_their_turns_and_what_is_held_back_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watched_places, "MOST_OUTPUTS", 2)
    known = {f"belfry.fired.{name}": 1 for name in "abcde"}
    rounds, held = OutputRounds("belfry.fired", lambda: known), [("belfry.fired.a", 0)]
    looks = ["".join(t[-1] for t, _ in rounds.next([0], 1, held)) for _ in range(4)]
    assert looks == ["ab", "acd", "ae", "abc"]
    del known["belfry.fired.a"]
    assert [topic[-1] for topic, _ in rounds.next([0], 1, held)] == ["d", "e"]


def test_a_topic_of_policies_without_partitions_is_asked_for_again(cluster: Cluster) -> None:
    cluster.partitions = {}
    cluster.look(1)
    assert ("belfry.tenants", 0) not in cluster.asked
    cluster.partitions = {0: None}
    cluster.look(1)
    assert ("belfry.tenants", 0) in cluster.asked


def test_who_is_unknown_after_a_look_that_failed_is_no_stranger(cluster: Cluster) -> None:
    cluster.ends[SCHEDULES], cluster.open = (30, 17), [STRANGER]
    cluster.look()
    assert cluster.watch.stranger(1) == STRANGER
    cluster.away = True
    cluster.watch.start()
    while cluster.watch.stranger(1):
        cluster.watch._thread.stopping.wait(0.01)
    cluster.watch.stop()
    assert cluster.watch.stranger(1) is None
