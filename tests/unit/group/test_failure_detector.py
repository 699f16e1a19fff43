"""How long a standby waits, and for what: by the clock of a model of two workers and a broker.

owner       a heartbeat every 300 ms, a position of a group; commits where it must
standby     reads the heartbeat every 200 ms (100 once it is late), each log every 100 ms
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from belfry.balance.assignment import NO_HEARTBEAT, Watched
from belfry.balance.assignment_map import IDLE_COMMIT_MS, MemberMetadata, idle_commit_ms
from belfry.balance.heartbeat import Heartbeat
from belfry.group.failure_detector import DetectorTimeouts, FailureDetector
from belfry.group.group import Group
from belfry.group.heartbeat_watch import FOUND_AGAIN_MS, HeartbeatWatch
from belfry.group.heartbeats import LISTEN_EVERY_MS, QUIET_MS
from belfry.partitions.rivals import Rivals
from belfry.settings import Settings

TURN_MS = 100.0
DIES_MS = 10_050.0
PARTITIONS = (1, 13, 50, 100, 200)
Now = Callable[[float], bool]


def never(_: float) -> bool:
    return False


class Model:
    """A standby's worker that stands by for all that one owner has."""

    def __init__(self, partitions: int, *, heartbeats: bool = True, rank: int = 0) -> None:
        self.partitions = range(partitions)
        self.heartbeats = heartbeats
        self.dies_ms = DIES_MS
        self.hangs: dict[int, float] = {}
        self.away: Now = never
        self.asleep: Now = never
        self.slow: Now = never
        self.mute: Now = never
        self.steps: Callable[[int, float], bool] = lambda *_: False
        self.grows: Now = never
        self.taken: dict[int, float] = {}
        self.reads = self.looks = 0
        self.watch = HeartbeatWatch("owner", 0.0) if heartbeats else None
        self.detectors = {p: FailureDetector(p, 0.0) for p in self.partitions}
        settings = Settings(session_timeout_ms=10_000)
        rivals = Rivals(settings, Group(MemberMetadata("standby")))
        ranks = dict.fromkeys(self.partitions, rank)
        key = 0 if heartbeats else NO_HEARTBEAT
        watched = Watched("owner", partitions, key, ranks)
        self.timeouts = {p: rivals.timeouts(p, watched) for p in self.partitions}
        self._listened_ms = 0.0

    def run(self, until_ms: float) -> dict[int, float]:
        """When each partition was taken over."""
        now_ms = 0.0
        while now_ms < until_ms and len(self.taken) < len(self.partitions):
            now_ms += TURN_MS
            if self.asleep(now_ms):
                continue
            if self.watch is not None:
                self._listen(self.watch, now_ms)
            for partition, detector in self.detectors.items():
                if partition not in self.taken:
                    self._look_after(partition, detector, now_ms)
        return self.taken

    def _beat(self, now_ms: float) -> tuple[int, Heartbeat]:
        """What the broker holds: the last heartbeat of a living owner that is not mute."""
        beats = [
            n
            for n in range(int(min(now_ms, self.dies_ms)) // IDLE_COMMIT_MS + 1)
            if not self.mute(n * IDLE_COMMIT_MS)
        ]
        sent_ms = beats[-1] * IDLE_COMMIT_MS
        well = {p for p in self.partitions if sent_ms < self.hangs.get(p, sent_ms + 1)}
        return beats[-1], Heartbeat("owner", frozenset(well))

    def _listen(self, watch: HeartbeatWatch, now_ms: float) -> None:
        quiet = watch.quiet_ms(now_ms) >= QUIET_MS
        if not quiet and now_ms - self._listened_ms < LISTEN_EVERY_MS:
            return
        self._listened_ms = now_ms
        self.reads += 1
        if self.away(now_ms):
            watch.unanswered(now_ms)
        else:
            took_ms = 300.0 if self.slow(now_ms) else 2.0
            watch.looked(now_ms, now_ms + took_ms, *self._beat(now_ms))

    def _look_after(self, partition: int, detector: FailureDetector, now_ms: float) -> None:
        timeouts = self.timeouts[partition]
        assert timeouts is not None
        detector.follow(self.watch, timeouts)
        detector.here(now_ms)
        if self.steps(partition, now_ms):
            detector.heard(now_ms)
        if detector.wants_look(now_ms):
            self.looks += 1
            end = 50 + (int(now_ms) if self.grows(now_ms) else 0)
            detector.looked(now_ms, now_ms + 2.0, 50, end)
        if detector.over(now_ms + 2.0):
            self.taken[partition] = now_ms


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_dead_worker_is_replaced_within_two_seconds_whatever_it_owned(partitions: int) -> None:
    model = Model(partitions)
    taken = model.run(30_000)
    assert len(taken) == partitions
    # A second, and the time between two heartbeats and between two looks at them.
    assert min(taken.values()) >= DIES_MS - IDLE_COMMIT_MS + 1_000
    assert max(taken.values()) <= DIES_MS + 1_500


def test_neither_delay_nor_cost_grows_with_the_partitions() -> None:
    models = [Model(partitions) for partitions in PARTITIONS]
    delays = {max(model.run(30_000).values()) for model in models}
    assert len(delays) == 1
    assert len({model.reads for model in models}) == 1
    assert {model.looks for model in models} == {0}


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_an_idle_owner_that_lives_keeps_everything(partitions: int) -> None:
    model = Model(partitions)
    model.dies_ms = 1e9
    assert model.run(60_000) == {}


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_partition_that_hangs_is_replaced_alone(partitions: int) -> None:
    """Its worker vouches for it no more; the others stay where they are."""
    model = Model(partitions)
    model.dies_ms, model.hangs[0] = 1e9, 5_000.0
    assert list(model.run(20_000)) == [0]
    assert model.taken[0] <= 5_000 + IDLE_COMMIT_MS + LISTEN_EVERY_MS + 2_700


def test_a_long_transaction_that_grows_is_no_partition_that_hangs() -> None:
    model = Model(1)
    model.dies_ms, model.hangs[0], model.grows = 1e9, 5_000.0, lambda _: True
    assert model.run(30_000) == {}


def test_a_partition_that_is_still_being_taken_over_has_its_time() -> None:
    """With many at once that takes longer than a second."""
    model = Model(100)
    model.dies_ms = 1e9
    model.hangs = dict.fromkeys(range(100), 0.0)
    taken = model.run(30_000)
    assert min(taken.values()) >= 3 * idle_commit_ms(100)


@pytest.mark.parametrize("partitions", [1, 2, 13])
def test_an_owner_that_lives_has_five_seconds_for_a_take_over(partitions: int) -> None:
    model = Model(partitions)
    model.dies_ms, model.hangs = 1e9, dict.fromkeys(range(partitions), 0.0)
    taken = model.run(30_000)
    assert 5_000 <= min(taken.values()) <= max(taken.values()) <= 9_000


def test_the_second_standby_leaves_the_first_one_what_an_owner_never_took_over() -> None:
    """All of them at once would fence each other off, and it again."""
    taken_ms = []
    for rank in range(3):
        model = Model(1, rank=rank)
        model.dies_ms, model.hangs[0] = 1e9, 0.0
        taken_ms.append(model.run(30_000)[0])
    assert taken_ms[0] >= 5_000
    assert all(later - sooner >= 900 for sooner, later in pairwise(taken_ms))


def test_who_was_wrong_about_a_take_over_waits_twice_as_long() -> None:
    waits = DetectorTimeouts(1_000.0, 20_000.0)
    found = [waits.timeouts(1, 1, mistakes).takes_over_ms for mistakes in range(4)]
    assert found == [6_000.0, 11_000.0, 20_000.0, 20_000.0]
    assert waits.timeouts(200, 0, 0).takes_over_ms == waits.timeouts(200, 0, 0).commits_ms > 5_000


def test_a_process_that_sleeps_often_replaces_a_partition_that_hangs() -> None:
    """That it did not look says nothing of the brokers: the owner has not to take over anew."""
    model = Model(2)
    model.dies_ms, model.hangs[0] = 1e9, 5_900.0
    model.asleep = lambda now_ms: now_ms % 3_000 < 900
    assert list(model.run(30_000)) == [0]


def test_an_owner_has_them_again_after_the_broker_was_away() -> None:
    """Its transactions ended unknown, so it takes over anew, and begins when the broker is back."""
    model = Model(2)
    model.dies_ms, model.away = 1e9, lambda now_ms: 8_000 <= now_ms < 20_000
    model.hangs = dict.fromkeys(range(2), 8_000.0)
    taken = model.run(40_000)
    assert 25_000 <= min(taken.values()) <= max(taken.values()) <= 29_000


def test_a_broker_that_is_away_is_not_the_owners_silence() -> None:
    model = Model(50)
    model.dies_ms, model.away = 1e9, lambda now_ms: 5_000 < now_ms < 12_000
    # The owner finds it again a second and a half later than the standby.
    model.mute = lambda now_ms: 5_000 < now_ms < 13_500
    assert model.run(30_000) == {}


def test_after_the_broker_was_away_a_dead_owner_is_found_out() -> None:
    model = Model(50)
    model.away = lambda now_ms: 9_000 < now_ms < 15_000
    taken = model.run(30_000)
    assert len(taken) == 50
    assert max(taken.values()) <= 15_000 + FOUND_AGAIN_MS + 1_500


def test_a_broker_that_answers_slowly_accuses_nobody() -> None:
    model = Model(10)
    model.slow = lambda now_ms: now_ms > 9_000
    assert model.run(30_000) == {}


def test_a_process_that_slept_accuses_nobody() -> None:
    model = Model(10)
    model.dies_ms = 1e9
    model.asleep = lambda now_ms: 5_000 < now_ms < 9_000
    assert model.run(30_000) == {}


def test_who_wakes_up_beside_a_dead_owner_waits_anew() -> None:
    model = Model(10)
    model.asleep = lambda now_ms: 9_000 < now_ms < 20_000
    assert 21_000 <= min(model.run(40_000).values()) <= 21_500


def test_an_owner_whose_heartbeats_are_lost_is_heard_by_its_commits() -> None:
    """It commits wherever somebody stands by, each partition as often as it manages."""
    model = Model(100)
    model.dies_ms, model.mute = 1e9, lambda now_ms: now_ms > 0
    model.steps = lambda p, now_ms: (now_ms + 100 * p) % idle_commit_ms(100) < TURN_MS
    assert model.run(60_000) == {}


def test_the_second_standby_leaves_the_first_one_its_partition() -> None:
    """The first one took it over, and commits there as often as it can."""
    model = Model(200, rank=1)
    taken_over_ms = DIES_MS + 1_400
    often = idle_commit_ms(200)
    model.steps = lambda _, now_ms: (
        now_ms - taken_over_ms >= 0 and ((now_ms - taken_over_ms) % often < TURN_MS)
    )
    assert model.run(60_000) == {}


def test_the_second_standby_is_there_where_the_first_one_died_as_well() -> None:
    taken = Model(200, rank=1).run(60_000)
    assert len(taken) == 200
    assert max(taken.values()) <= DIES_MS + 2_500


@pytest.mark.parametrize(("partitions", "most_ms"), [(1, 1_300), (13, 1_300), (200, 15_300)])
def test_an_owner_of_an_older_version_is_judged_by_commits(partitions: int, most_ms: int) -> None:
    model = Model(partitions, heartbeats=False)
    often = idle_commit_ms(partitions)
    model.steps = lambda _, now_ms: now_ms < DIES_MS and now_ms % often < TURN_MS
    taken = model.run(60_000)
    assert len(taken) == partitions
    assert max(taken.values()) <= DIES_MS + most_ms
