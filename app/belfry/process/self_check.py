"""Self-check: a worker that cannot do its work says so, and gives its partitions to others.

Fencing keeps an unfit worker from doing harm, but it does not make the worker give its partitions
away. So each worker checks itself: can none of its partitions commit although Kafka answers, is the
disk full, is the clock off? When such a reason has lasted, the worker asks the group for no
partitions. It stays a member, and asks again after a pause that grows with each relapse.

    12:00:00  the disk has 40 MiB left, 64 are needed: a reason
    12:00:10  it has lasted for unfit_limit_ms, and Kafka answers: no partitions, please
    12:00:11  others own them
    12:00:40  there is room again; the pause of 60 s is not over
    12:01:10  asks for partitions again; the next pause will be 120 s, and at most an hour
    13:01:10  nothing was wrong for an hour: the next pause will be 60 s again

A worker does not leave if it is alone, because then no worker would fire. If all leave in the same
second, the group still gives them their partitions. A worker does not leave either while Kafka does
not answer: then the others are most likely no better off. That time does not count, so a worker has
all of unfit_limit_ms to commit once Kafka is back:

    12:00:00  the broker stops
    12:00:08  all partitions have failed, and Kafka does not answer: no reason
    12:00:25  Kafka answers, and nothing was committed yet: a reason, which is 0 s old
    12:00:27  one partition has committed: no reason is left

`Fitness` is pure and decides. `SelfCheck` looks once a second, in the thread `belfry-self-check`.
Liveness is a different check: it only fails if a new process would help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import structlog

from belfry.firing.clock_guard import ClockGuard
from belfry.group.group import Group
from belfry.host.background import Background, started
from belfry.host.disk import MIB, DataDisk
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.supervisor import Owners

# Seconds between two looks.
LOOK_S: Final = 1.0
# Seconds that Kafka has to answer one request.
ANSWER_S: Final = 1.0
# The pause after the worker has left, before it asks for partitions again; doubled each time.
FIRST_PAUSE_MS: Final = 60_000.0
LONGEST_PAUSE_MS: Final = 3_600_000.0
# How often the group's client is made to look, and the pause between two looks: its broker may
# learn of new partitions later than the broker that was asked here, a look that fails is not
# repeated, and by itself the client only looks every few minutes.
LOOKS: Final = 12
AGAIN_MS: Final = 5_000.0
# A partition's loop turns at least once a second; after this time without a turn it is stuck.
STUCK_MS: Final = 120_000.0

log = structlog.get_logger(__name__)


class Fitness:
    """Decides when to leave and when to come back, from reasons that come and go.

    `limit_ms` is how long a reason has to last; `now_ms` is a monotonic reading in ms. An empty
    reason means that all is well.
    """

    def __init__(self, limit_ms: float) -> None:
        self._limit_ms = limit_ms
        self._since_ms: float | None = None
        self._left_ms: float | None = None
        self._back_ms = 0.0
        self._pause_ms = FIRST_PAUSE_MS

    def leaves(self, reason: str, now_ms: float) -> bool:
        """Whether a reason has lasted for too long; to be called at each look, also without a
        reason.
        """
        if not reason or self._left_ms is not None:
            self._since_ms = None
            return False
        if self._since_ms is None:
            self._since_ms = now_ms
        return now_ms - self._since_ms >= self._limit_ms

    def left(self, now_ms: float) -> None:
        """Note that the worker has asked for no partitions."""
        if now_ms - self._back_ms >= LONGEST_PAUSE_MS:
            self._pause_ms = FIRST_PAUSE_MS
        self._left_ms = now_ms

    def returns(self, reason: str, now_ms: float) -> bool:
        """Whether to ask for partitions again: no reason is left, and the pause is over.

        If so, the next pause is doubled, unless the worker leaves an hour later or more.
        """
        if self._left_ms is None or reason or now_ms - self._left_ms < self._pause_ms:
            return False
        self._left_ms, self._back_ms = None, now_ms
        self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        return True


class SelfCheck:
    """A thread that looks at this worker once a second.

    `reason` says why the worker has given its partitions away, and is empty otherwise; readiness
    shows it.
    """

    def __init__(
        self,
        opener: PartitionOpener,
        guard: ClockGuard,
        owners: Owners,
        group: Group,
        beside: Callable[[], object] = lambda: None,
    ) -> None:
        """`beside` is called after each look, in the same thread."""
        self._beside = beside
        self._opener = opener
        self._guard = guard
        self._owners = owners
        self._group = group
        self._fitness = Fitness(opener.settings.unfit_limit_ms)
        self._thread = Background("self-check", self._turn, log, "the self-check failed")
        self.disk = DataDisk(opener.settings.data_dir)
        self.reason = ""
        # The last seen number of partitions of the topic of requests; how often, and from when on,
        # the group is to look for more. Looks are counted, so a pause of the process costs none.
        self._inputs = self._looks = 0
        self._again_ms = 0.0

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; a look that is under way goes on."""
        self._thread.stopping.set()

    def live(self) -> bool:
        """False if only a new process helps: a thread has ended or is stuck.

        The port calls this at each probe of liveness. If it is False, Kubernetes restarts the
        container.
        """
        now_ms = self._opener.clock.monotonic_ms()
        stuck = [r.partition for r in self._owners.runners() if r.turned_ms_ago(now_ms) > STUCK_MS]
        return self._owners.working and not stuck and all(each.alive for each in started())

    def _turn(self) -> None:
        """One turn of the thread: wait, then look unless the end was asked for meanwhile."""
        if not self._thread.stopping.wait(LOOK_S):
            self._look()
            self._beside()

    def _look(self) -> None:
        """Look once: at the identities of the state, the number of partitions, marks of signatures,
        and all reasons.
        """
        now_ms = self._opener.clock.monotonic_ms()
        self._opener.identities.look(now_ms)
        self._count(now_ms)
        self._opener.trust.marks.look(now_ms)
        # The looks above may have waited for Kafka.
        now_ms = self._opener.clock.monotonic_ms()
        reason = next(self._reasons(now_ms), "")
        if self._fitness.leaves(reason, now_ms) and self._kafka_answers():
            self.reason = reason
            if self._group.alone:
                log.error("this worker is unfit, and it is the only one", reason=reason)
                return
            log.error("this worker is unfit and gives its partitions away", reason=reason)
            self._fitness.left(now_ms)
            self._group.leave(unfit=True)
        elif self._fitness.returns(reason, now_ms):
            log.warning("this worker asks for partitions again", after=self.reason)
            self.reason = ""
            self._group.leave(leaving=False)
        elif not reason and not self._group.leaving:
            self.reason = ""

    def _count(self, now_ms: float) -> None:
        """See whether partitions were added; the group shares them out once it has looked too.

        The group was joined with older metadata, so it looks after the start as well.
        """
        changelog, inputs = self._opener.identities.partitions
        if self._opener.counted.grown(changelog):
            log.info("more partitions hold schedules now", partitions=changelog)
        if inputs > self._inputs:
            self._inputs, self._looks, self._again_ms = inputs, LOOKS, now_ms
        if self._looks and self._owners.answered and now_ms >= self._again_ms:
            self._looks, self._again_ms = self._looks - 1, now_ms + AGAIN_MS
            self._group.look_again()

    def _reasons(self, now_ms: float) -> Iterator[str]:
        """The reasons that keep the worker from its work; the first one counts."""
        checks: tuple[Callable[[float], str], ...] = (self._disk, self._clock, self._commits)
        return (reason for check in checks if (reason := check(now_ms)))

    def _disk(self, _now_ms: float) -> str:
        """Why the disk keeps the worker from its work."""
        disk, least = self.disk, self._opener.settings.disk_reserve_mb
        disk.look()
        left = disk.free_bytes // MIB
        if disk.problem or left >= least:
            return disk.problem
        return (
            f"the disk of {disk.folder} has {left} MiB left, {least} are needed:"
            " make room, or set BELFRY_DISK_RESERVE_MB"
        )

    def _clock(self, _now_ms: float) -> str:
        """Why the clock keeps it from work; without partitions the clock does not matter."""
        guard = self._guard
        owns = any(runner.epoch is not None for runner in self._owners.runners())
        return "" if guard.may_fire or not owns else guard.paused_because

    def _commits(self, now_ms: float) -> str:
        """Why commits keep it from work: if all partitions fail though Kafka answers, the worker is
        the cause.
        """
        runners = [runner for runner in self._owners.runners() if runner.assigned]
        since = [runner.failures.since_ms for runner in runners]
        if not since or None in since or not self._kafka_answers():
            return ""
        longest_s = max(now_ms - each for each in since if each is not None) / 1000
        problems = (runner.failures.problem for runner in runners)
        said = next(filter(None, problems), "no commit succeeds")
        return f"none of its {len(runners)} partitions has committed for {longest_s:.0f} s: {said}"

    def _kafka_answers(self) -> bool:
        """Whether Kafka answers; if not, other workers are most likely no better off."""
        try:
            self._opener.log_ends.end(self._opener.output_topics.changelog, 0, ANSWER_S)
        except ConnectionError:
            return False
        return True
