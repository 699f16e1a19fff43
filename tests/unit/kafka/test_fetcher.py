"""The fetcher against a client that answers as it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Timer
from time import monotonic

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from belfry.kafka import feeding, fetch_client, fetch_plan, fetch_position, fetcher
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.kafka.fetcher import Fetcher
from tests.unit.kafka.told_client import A, B, Client, Cluster, Row, batch, cluster_asked

LONG_S = 5.0


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(Client, "cluster_of", made, raising=False)
    monkeypatch.setattr(fetch_client, "ParallelClient", Client)
    monkeypatch.setattr(feeding, "FetchRequest", lambda *given: cluster_asked(made, given))
    return made


@pytest.fixture
def fetching(cluster: Cluster) -> Iterator[Fetcher]:
    made = Fetcher({"bootstrap.servers": "nowhere:9092"})
    yield made
    made.close()
    assert all(client.closed for client in cluster.clients)


def taken(fetching: Fetcher) -> Fetched:
    answer = fetching.take(LONG_S)
    assert answer is not None
    return answer


def with_data(fetching: Fetcher) -> Fetched:
    while not (answer := taken(fetching)).data:
        pass
    return answer


def test_records_come_in_order_and_then_the_end_once(cluster: Cluster, fetching: Fetcher) -> None:
    cluster.logs[A] = 2
    fetching.follow({A: 0})
    found = [taken(fetching) for _ in range(3)]
    assert [(each.offset, each.behind) for each in found] == [(0, 1), (1, 2), (2, 2)]
    assert [bool(each.data) for each in found] == [True, True, False]
    assert fetching.take(0.05) is None


def test_the_next_request_has_left_when_an_answer_is_taken(
    cluster: Cluster, fetching: Fetcher
) -> None:
    """So the broker works on it, and the answer comes, while this one is read and applied."""
    cluster.logs[A] = 3
    fetching.follow({A: 0})
    for offset in range(3):
        assert taken(fetching).offset == offset
        assert cluster.asked[-1] == (1, {A: offset + 1})


def test_where_nothing_is_followed_the_time_is_waited_for(fetching: Fetcher) -> None:
    began = monotonic()
    assert fetching.take(0.05) is None
    assert monotonic() - began >= 0.05


def test_an_answer_without_room_for_more_is_no_end(cluster: Cluster, fetching: Fetcher) -> None:
    tries: Iterator[Row] = iter(
        [(0, 0, 9, 9, [], b""), (0, 0, 9, 9, [], b""), (0, 0, 0, 0, [], b"")]
    )
    cluster.rows[A] = lambda _: next(tries)
    fetching.follow({A: 0})
    assert not taken(fetching).data
    assert next(tries, None) is None, "the end was told before it was met"


def test_some_wait_for_another_call(cluster: Cluster, fetching: Fetcher) -> None:
    cluster.logs |= {A: 1, B: 1}
    fetching.follow({A: 0, B: 0})
    found = None
    while found is None:
        found = fetching.take(0.0, [A])
    assert found.where == B
    assert taken(fetching).where == A


def test_what_nobody_takes_is_not_fetched_further_and_others_are(
    cluster: Cluster, fetching: Fetcher
) -> None:
    """A partition whose owner is slow has one answer in memory, however much its log holds."""
    cluster.logs |= {A: 50, B: 50}
    fetching.follow({A: 0, B: 0})
    found: list[Where] = []
    while len(found) < 50:
        answer = fetching.take(LONG_S, [A])
        assert answer is not None
        found.append(answer.where)
    assert set(found) == {B}
    assert [each.where for each in fetching._answers].count(A) == 1
    fetching.follow({A: 0})
    assert [taken(fetching).offset for _ in range(2)] == [0, 1]


def test_answers_of_all_partitions_have_room_in_common(
    cluster: Cluster, fetching: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_position, "HANGS_S", LONG_S)
    monkeypatch.setattr(fetching._feeder, "_answer_bytes", len(batch(0)))
    third = ("in", 2)
    cluster.leaders[third] = 1
    cluster.logs |= {A: 1, B: 1, third: 1}
    fetching.follow({A: 0, B: 0})
    while len(fetching._answers) < 2:
        fetching.take(0.01, [A, B])
    fetching.follow({A: 0, B: 0, third: 0})
    assert fetching.take(0.1, [A, B]) is None
    assert not any(third in wanted for _, wanted in cluster.asked)
    assert {with_data(fetching).where for _ in range(3)} == {A, B, third}


def test_large_answers_of_some_may_stay_for_another_call(
    cluster: Cluster, fetching: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.logs |= {A: 1, B: 1}
    fetching.follow({A: 0, B: 0})
    size = len(batch(0))
    monkeypatch.setattr(fetcher, "SIP_BYTES", size)
    found = [fetching.take(0.1, (), {A}) for _ in range(4)]
    assert {each.where for each in found if each is not None and each.data} == {B}
    monkeypatch.setattr(fetcher, "SIP_BYTES", size + 1)
    answer = None
    while answer is None or not answer.data:
        answer = fetching.take(0.1, (), {A, B})
    assert (answer.where, len(answer.data)) == (A, size)


def test_a_request_that_leaves_a_partition_out_waits_for_less(
    cluster: Cluster, fetching: Fetcher
) -> None:
    """What comes for that one would not end the wait."""
    fetching.follow({A: 0, B: 0})
    for _ in range(2):
        taken(fetching)
    assert fetching.take(0.05) is None
    assert cluster.waits_ms[-1] == 1000 * fetch_plan.WAIT_S
    cluster.logs[A] = 2
    while (answer := fetching.take(0.02, [A])) is None and len(fetching._answers) == 0:
        pass
    assert answer is None
    asked = len(cluster.waits_ms)
    fetching.take(0.1, [A])
    assert max(cluster.waits_ms[asked + 1 :]) <= 20


def test_a_new_partition_does_not_wait_for_a_request_that_waits_for_others(
    cluster: Cluster, fetching: Fetcher
) -> None:
    """It is asked for on a connection of its own until it has nothing; then with the others."""
    fetching.follow({A: 0})
    taken(fetching)
    cluster.waits_s, asked = 3_600.0, len(cluster.asked)
    assert fetching.take(0.05) is None
    cluster.logs[B] = 2
    fetching.follow({A: 0, B: 0})
    assert [taken(fetching).behind for _ in range(3)] == [1, 2, 2]
    # A's own request is under way all the time, and B is not asked for over and over.
    assert fetching.take(0.05) is None
    assert cluster.asked[asked:] == [(1, {A: 0}), *((1, {B: offset}) for offset in (0, 1, 2))]
    assert cluster.groups[asked:] == [0, 2, 2, 2]


def test_a_new_partition_goes_with_the_others_after_it_has_come_once(
    cluster: Cluster, fetching: Fetcher
) -> None:
    fetching.follow({A: 0})
    taken(fetching)
    fetching.follow({A: 0, B: 0})
    taken(fetching)
    assert fetching.take(0.05) is None
    assert cluster.asked[-1] == (1, {A: 0, B: 0})


def test_after_a_small_answer_a_partition_is_left_alone_for_a_sip(cluster: Cluster) -> None:
    fetching = Fetcher({"bootstrap.servers": "nowhere:9092"}, sip_s=3_600.0)
    cluster.logs |= {A: 9, B: 9}
    fetching.follow({A: 0, B: 0})
    assert {taken(fetching).where for _ in range(2)} == {A, B}
    assert fetching.take(0.05) is None
    fetching.close()


def test_a_wait_can_be_ended_from_another_thread(fetching: Fetcher) -> None:
    fetching.follow({A: 0})
    taken(fetching)
    began = monotonic()
    waker = Timer(0.02, fetching.wake)
    waker.start()
    assert fetching.take(LONG_S) is None
    waker.join()
    # Also the next one, where none is under way.
    fetching.wake()
    assert fetching.take(LONG_S) is None
    assert monotonic() - began < LONG_S


def test_a_new_leader_is_asked_whether_it_has_what_was_read(
    cluster: Cluster, fetching: Fetcher
) -> None:
    cluster.logs[A] = 1
    fetching.follow({A: 0})
    taken(fetching)
    taken(fetching)
    cluster.rows[A] = lambda _: (0, NotLeaderForPartitionError.errno, 0, 0, [], b"")
    while not cluster.clients[0].updates:
        fetching.take(0.02)
    del cluster.rows[A]
    cluster.leaders[A], cluster.logs[A], cluster.ends[A] = 2, 2, (0, 1)
    assert taken(fetching).offset == 1
    assert cluster.asked[-1][0] == 2


@pytest.mark.parametrize("end", [0, -1], ids=["cut off", "another log"])
def test_a_log_without_what_was_read_is_told(cluster: Cluster, fetching: Fetcher, end: int) -> None:
    cluster.logs[A] = 1
    cluster.ends[A] = (0, end)
    fetching.follow({A: 0})
    taken(fetching)
    cluster.broken = [KafkaConnectionError("gone")]
    while (answer := taken(fetching)).error is None:
        pass
    assert isinstance(answer.error, OffsetGone)
    assert fetching.take(0.02) is None


def test_an_epoch_that_is_refused_holds_up_its_own_partition_alone(
    cluster: Cluster, fetching: Fetcher
) -> None:
    cluster.logs |= {A: 1, B: 1}
    cluster.ends |= {A: (NotLeaderForPartitionError.errno, -1), B: (0, 1)}
    fetching.follow({A: 0, B: 0})
    assert {taken(fetching).where for _ in range(2)} == {A, B}
    cluster.broken = [KafkaConnectionError("gone")]
    while cluster.broken:
        fetching.take(0.02)
    cluster.logs |= {A: 2, B: 2}
    assert with_data(fetching).where == B
    cluster.ends[A] = (0, 1)
    assert with_data(fetching).where == A


def test_data_without_a_whole_batch_is_told_and_asked_for_again(
    cluster: Cluster, fetching: Fetcher
) -> None:
    cluster.rows[A] = lambda _: (0, 0, 1, 1, [], b"\xff" * 5_000_000)
    fetching.follow({A: 0})
    assert isinstance(taken(fetching).error, ConnectionError)
    del cluster.rows[A]
    cluster.logs[A] = 1
    assert taken(fetching).data


def test_what_a_log_does_not_hold_is_told_once(cluster: Cluster, fetching: Fetcher) -> None:
    cluster.rows[A] = lambda _: (0, OffsetOutOfRangeError.errno, 0, 0, [], b"")
    fetching.follow({A: 5})
    assert isinstance(taken(fetching).error, OffsetGone)
    assert fetching.take(0.02) is None
    del cluster.rows[A]
    cluster.logs[A] = 6
    fetching.follow({A: 5})
    assert taken(fetching).data


def test_a_right_that_is_missing_is_told(cluster: Cluster, fetching: Fetcher) -> None:
    cluster.rows[A] = lambda _: (0, TopicAuthorizationFailedError.errno, 0, 0, [], b"")
    fetching.follow({A: 0})
    assert "give it the rights READ and DESCRIBE" in str(taken(fetching).error)


def test_a_throttled_reader_waits(cluster: Cluster, fetching: Fetcher) -> None:
    cluster.logs[A], cluster.throttle_ms = 2, 200
    fetching.follow({A: 0})
    taken(fetching)
    began = monotonic()
    taken(fetching)
    assert monotonic() - began > 0.1


def test_a_client_that_has_ended_by_itself_is_made_anew(
    cluster: Cluster, fetching: Fetcher
) -> None:
    cluster.logs[A] = 1
    fetching.follow({A: 0})
    taken(fetching)
    cluster.clients[0]._sync_task.cancel()

    async def fails() -> None:
        raise ValueError("who leads is not known")

    assert fetching._loop is not None
    cluster.clients[0]._sync_task = fetching._loop.create_task(fails())
    cluster.logs[A] = 2
    with_data(fetching)
    deadline = monotonic() + LONG_S
    while len(cluster.clients) == 1 and monotonic() < deadline:
        fetching.take(0.02)
    cluster.logs[A] = 3
    with_data(fetching)
    assert len(cluster.clients) == 2
