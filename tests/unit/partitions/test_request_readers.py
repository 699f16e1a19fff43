"""Partitions that share a thread and a fetcher: what one of them does holds no other up."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from threading import Event, Lock
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.kafka import fetcher
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.kafka.log_bounds import OutOfRange
from belfry.kafka.request_log import RequestLog
from belfry.partitions import reader_turns, request_readers, source
from belfry.partitions.request_readers import RequestReaders
from belfry.partitions.source import AHEAD, SourceReader
from belfry.wire.batch import SourceBatch
from tests.simulation.record_batches import stored

A, B = ("in", 0), ("in", 1)
LONG_S = 10.0


class Cluster:
    """What a fetcher would bring: one record an answer, for as long as a partition is followed."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.ends: dict[Where, int] = {A: 0, B: 0}
        self.errors: dict[Where, Exception] = {}
        self.more: dict[Where, bytes] = {}
        self.breaks: Exception | None = None
        self.fetchers: list[Fetches] = []


class Fetches:
    """The fetcher's face."""

    def __init__(self, cluster: Cluster) -> None:
        cluster.fetchers.append(self)
        self._cluster = cluster
        self._places: dict[Where, int] = {}
        self._woken = Event()
        self.followed: list[dict[Where, int]] = []
        self.closed = False

    def follow(self, positions: Mapping[Where, int]) -> None:
        self._places = dict(positions)
        self.followed.append(dict(positions))

    def take(
        self, wait_s: float, but: Container[Where] = (), small_of: Container[Where] = ()
    ) -> Fetched | None:
        answer = self._first(but, small_of)
        if answer is None and wait_s:
            self._woken.wait(0.005)
            self._woken.clear()
        return answer

    def _first(self, but: Container[Where], small_of: Container[Where]) -> Fetched | None:
        with self._cluster.lock:
            if self._cluster.breaks is not None:
                error, self._cluster.breaks = self._cluster.breaks, None
                raise error
            for where in [*self._places]:
                if where in but:
                    continue
                at = self._places[where]
                if where in self._cluster.errors:
                    return Fetched(where, at, at, error=self._cluster.errors.pop(where))
                if at < self._cluster.ends[where]:
                    data = stored(at, 1_000, (b"k", b"v", None), -1)
                    data += self._cluster.more.get(where, b"")
                    if where in small_of and len(data) >= vars(source)["SIP_BYTES"]:
                        continue
                    # The next one is another's, if there is one.
                    del self._places[where]
                    self._places[where] = at + 1
                    return Fetched(where, at, at + 1, data)
        return None

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self.closed = True


class Owner:
    """The owner of one partition, who takes in what comes, or nothing."""

    def __init__(
        self, readers: RequestReaders, where: Where, *, takes: bool = True, at_most: int = 1_000
    ) -> None:
        self.batches: list[SourceBatch] = []
        self.takes = takes
        log = RequestLog({}, *where)
        log.check = lambda *_: None  # type: ignore[method-assign]
        log.seek(0)
        self.reader = SourceReader(log, at_most, 1_000_000, self._hand_over, readers)

    def _hand_over(self, batch: SourceBatch) -> None:
        self.batches.append(batch)
        if self.takes:
            self.reader.taken(batch.parts)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(fetcher, "Fetcher", lambda *_, **__: Fetches(made))
    return made


@pytest.fixture
def readers(cluster: Cluster) -> RequestReaders:
    return RequestReaders({})


def until(what: Callable[[], object]) -> None:
    """Wait for what other threads do."""
    pause, deadline = Event(), monotonic() + LONG_S
    while not what():
        assert monotonic() < deadline
        pause.wait(0.002)


def test_an_owner_that_takes_nothing_in_holds_nobody_up(
    cluster: Cluster, readers: RequestReaders
) -> None:
    slow, quick = Owner(readers, A, takes=False), Owner(readers, B)
    cluster.ends |= {A: 500, B: 500}
    for owner in (slow, quick):
        owner.reader.start()
    until(lambda: quick.reader.end == 500)
    assert sum(each.parts for each in slow.batches) == AHEAD
    slow.takes = True
    slow.reader.taken(AHEAD)
    until(lambda: slow.reader.end == 500)
    for owner in (slow, quick):
        owner.reader.stop()
    offsets = [record[0] for batch in slow.batches for record in batch.records]
    assert offsets == [*range(500)]


@pytest.fixture
def floods(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is a trickle, and there is no room for any batch yet."""
    monkeypatch.setattr(source, "SIP_BYTES", 0)
    monkeypatch.setattr(reader_turns, "FEW", -1)
    monkeypatch.setattr(source, "HANGS_S", LONG_S)
    monkeypatch.setattr(reader_turns, "ROOM", 0)


@pytest.mark.usefixtures("floods")
def test_batches_of_all_partitions_have_room_in_common_and_come_in_turn(
    cluster: Cluster, readers: RequestReaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = [Owner(readers, ("in", number), takes=False) for number in range(6)]
    cluster.ends |= {owner.reader.where: 50 for owner in owners}
    for owner in owners:
        owner.reader.start()
    until(lambda: len(cluster.fetchers[0].followed[-1]) == 6)
    until(lambda: readers.crowded)
    assert not any(owner.batches for owner in owners)
    # A record of two bytes, and what it takes itself.
    monkeypatch.setattr(reader_turns, "ROOM", 3 * (source.RECORD_BYTES + 2))

    def under_way() -> list[int]:
        return [len(owner.batches) for owner in owners]

    until(lambda: sum(under_way()) == 3)
    first = under_way()
    assert sorted(first) == [0, 0, 0, 1, 1, 1]
    for owner in [each for each in owners if each.batches]:
        owner.reader.taken(1)
    until(lambda: sum(under_way()) == 6)
    assert under_way() == [1] * 6, "who has had no turn for longest has the next one"
    for owner in owners:
        owner.reader.stop()


def test_a_trickle_does_not_wait_for_room(
    cluster: Cluster, readers: RequestReaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_turns, "ROOM", -1)
    monkeypatch.setattr(reader_turns, "FEW", -1)
    owners = [Owner(readers, A), Owner(readers, B)]
    cluster.ends |= {A: 9, B: 9}
    for owner in owners:
        owner.reader.start()
    until(lambda: all(owner.reader.end == 9 for owner in owners))
    assert readers.crowded
    for owner in owners:
        owner.reader.stop()


@pytest.mark.usefixtures("floods")
def test_what_an_owner_that_hangs_holds_is_room_for_others_soon(
    cluster: Cluster, readers: RequestReaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_turns, "ROOM", 1)
    hangs, well = Owner(readers, A, takes=False), Owner(readers, B)
    hangs.reader.start()
    cluster.ends[A] = 9
    until(lambda: hangs.batches)
    well.reader.start()
    cluster.ends[B] = 9
    until(lambda: readers.crowded)
    assert not well.batches
    monkeypatch.setattr(source, "HANGS_S", 0.0)
    until(lambda: well.reader.end == 9)
    for owner in (hangs, well):
        owner.reader.stop()


@pytest.mark.usefixtures("floods")
def test_who_has_read_for_long_shares_room_with_those_whose_answers_wait(
    cluster: Cluster, readers: RequestReaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of gzip may be a gigabyte: whoever has read it always has a batch ready."""
    monkeypatch.setattr(reader_turns, "ROOM", 1)
    much, well = Owner(readers, A, takes=False, at_most=1), Owner(readers, B)
    cluster.more[A] = b"".join(stored(at, 1_000, (b"k", b"v", None), -1) for at in range(1, 50))
    cluster.ends[A] = 1
    much.reader.start()
    until(lambda: much.batches)
    well.reader.start()
    cluster.ends[B] = 1
    until(lambda: len(cluster.fetchers[0].followed[-1]) == 2)
    for turn in range(1, 10):
        until(lambda turn=turn: len(much.batches) == turn or well.batches)  # type: ignore[misc]
        until(lambda: readers.crowded)
        if not well.batches:
            much.reader.taken(much.batches[-1].parts)
    assert well.batches
    for owner in (much, well):
        owner.reader.stop()


@pytest.mark.parametrize(
    ("given", "told"),
    [(OffsetGone("cut off"), OutOfRange), (ConnectionError("no rights"), ConnectionError)],
)
def test_a_partition_that_cannot_be_read_is_its_own_owners_business(
    cluster: Cluster, readers: RequestReaders, given: Exception, told: type[Exception]
) -> None:
    lost, well = Owner(readers, A), Owner(readers, B)
    cluster.ends |= {A: 3, B: 3}
    for owner in (lost, well):
        owner.reader.start()
    until(lambda: lost.reader.end == 3 and well.reader.end == 3)
    cluster.errors[A] = given
    until(lambda: lost.reader.failure is not None)
    assert isinstance(lost.reader.failure, told)
    cluster.ends |= {A: 6, B: 6}
    until(lambda: well.reader.end == 6)
    assert well.reader.failure is None
    assert lost.reader.end == 3, "nothing is read for who has failed"
    lost.reader.stop()
    anew = Owner(readers, A)
    anew.reader.start()
    until(lambda: anew.reader.end == 6)
    assert len(cluster.fetchers) == 1
    assert not cluster.fetchers[0].closed
    for owner in (anew, well):
        owner.reader.stop()


def test_an_owner_that_fails_to_take_a_batch_fails_alone(
    cluster: Cluster, readers: RequestReaders
) -> None:
    odd, well = Owner(readers, A), Owner(readers, B)
    odd.reader._hand_over = lambda _batch: (_ for _ in ()).throw(LookupError("no agent"))
    cluster.ends |= {A: 9, B: 9}
    for owner in (odd, well):
        owner.reader.start()
    until(lambda: well.reader.end == 9)
    until(lambda: isinstance(odd.reader.failure, LookupError))
    assert well.reader.failure is None
    well.reader.stop()


def test_an_error_of_the_fetcher_ends_all_and_the_next_one_begins_anew(
    cluster: Cluster, readers: RequestReaders
) -> None:
    owners = [Owner(readers, A), Owner(readers, B)]
    for owner in owners:
        owner.reader.start()
    cluster.breaks = ValueError("a bug")
    until(lambda: all(isinstance(owner.reader.failure, ValueError) for owner in owners))
    until(lambda: cluster.fetchers[0].closed)
    for owner in owners:
        owner.reader.stop()
        assert owner.reader.failure is None
    anew = Owner(readers, A)
    cluster.ends[A] = 2
    anew.reader.start()
    until(lambda: anew.reader.end == 2)
    assert len(cluster.fetchers) == 2
    anew.reader.stop()


def test_the_last_one_to_leave_closes_the_connections(
    cluster: Cluster, readers: RequestReaders
) -> None:
    owners = [Owner(readers, A), Owner(readers, B)]
    for owner in owners:
        owner.reader.start()
    owners[0].reader.stop()
    closed = [each.closed for each in cluster.fetchers]
    owners[1].reader.stop()
    closed += [each.closed for each in cluster.fetchers]
    assert closed == [False, True]
    owners[1].reader.stop()
    assert len(cluster.fetchers) == 1


def test_a_partition_that_fails_alone_ends_the_thread(
    cluster: Cluster, readers: RequestReaders
) -> None:
    only = Owner(readers, A)
    only.reader.start()
    cluster.errors[A] = ConnectionError("away")
    until(lambda: cluster.fetchers[0].closed)
    only.reader.stop()
    anew = Owner(readers, A)
    anew.reader.start()
    cluster.ends[A] = 1
    until(lambda: anew.reader.end == 1)
    anew.reader.stop()


def test_a_thread_that_ends_late_does_nothing_to_those_who_came_after(
    cluster: Cluster, readers: RequestReaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_readers, "END_S", 0.0)
    amid, go_on = Event(), Event()
    former = Owner(readers, A)
    former.reader.start()
    (late,) = cluster.fetchers

    def hang(_wait_s: float, _but: Container[Where] = (), _small_of: Container[Where] = ()) -> None:
        amid.set()
        go_on.wait(LONG_S)
        raise ValueError("a bug")

    monkeypatch.setattr(late, "take", hang)
    assert amid.wait(LONG_S)
    former.reader.stop()
    after = Owner(readers, A)
    after.reader.start()
    go_on.set()
    until(lambda: late.closed)
    assert after.reader.failure is None
    cluster.ends[A] = 1
    until(lambda: after.reader.end == 1)
    assert len(cluster.fetchers) == 2
    after.reader.stop()


def test_a_new_term_is_fetched_for_from_its_own_position(
    cluster: Cluster, readers: RequestReaders
) -> None:
    """Also where the term before ended at that very place."""
    other, first = Owner(readers, B), Owner(readers, A)
    for owner in (other, first):
        owner.reader.start()
    until(lambda: cluster.fetchers and A in cluster.fetchers[0].followed[-1])
    second = Owner(readers, A)
    second.reader.start()
    until(lambda: cluster.fetchers[0].followed[-2:] == [{B: 0}, {B: 0, A: 0}])
    # Whoever leaves late takes nothing away from his successor.
    first.reader.stop()
    cluster.ends[A] = 1
    until(lambda: second.batches)
    for owner in (other, second):
        owner.reader.stop()


def test_a_batch_that_is_passed_over_slowly_gives_others_their_turns(
    cluster: Cluster, readers: RequestReaders
) -> None:
    """A reader of which each turn brings nothing yet is followed by the others in each round."""
    well = Owner(readers, B)
    slow: Any = SimpleNamespace(
        where=A, fetched=0, has_read=True, failure=None, has_room=lambda: True,
        may_turn=lambda: True, turn=lambda: turns.append(1), held_bytes=lambda _: 0, trickles=False,
    )  # fmt: skip
    turns: list[int] = []
    readers.enter(slow)
    well.reader.start()
    cluster.ends[B] = 50
    until(lambda: well.reader.end == 50)
    assert turns
    readers.leave(slow)
    well.reader.stop()
