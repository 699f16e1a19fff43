"""When a standby may take over: the owner's worker is silent, or its one partition hangs.

    by heartbeats   the worker's heartbeat stops          its partitions are taken over, all at once
                    it comes, without this partition      judged by itself: a step, or an open
                                                          transaction that grows, is a sign of life
                                                          and if it was not well yet, during
                                                          a take-over, it has 5 s for that
    by commits      an owner of an older version, or      judged by itself, with a longer time-out
                    one whose heartbeats are not taken    the more partitions it owns

The first case is the usual one, and neither its cost nor its delay grows with the partitions. The
fence makes all cases safe; a wrong judgement costs one hand-over.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from belfry.balance.assignment_map import IDLE_COMMIT_MS, MISSED_COMMITS, idle_commit_ms
from belfry.group.heartbeat_watch import HeartbeatWatch
from belfry.group.silence import LOOK_EVERY_MS, Silence

RANK_MS: Final = 1_000.0
# Looks at many partitions of one owner have pauses, to leave the broker time for other work.
LOOK_MS_PER_PARTITION: Final = 5.0
LOOKS_BEFORE_OVER: Final = 2.5
# The time of a living owner for a take-over. Another owner would have to begin the same anew, at
# the same brokers: after a restart of brokers, workers took turns at it for a minute.
TAKES_OVER_MS: Final = 5_000.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a standby waits, in milliseconds: by heartbeats, by commits, and for a take-over.

    All three include the additions for its rank and its former mistakes; `limit_ms` does not.
    `owns` is the number of the owner's partitions.
    """

    limit_ms: float
    heartbeats_ms: float
    commits_ms: float
    takes_over_ms: float
    owns: int = 1


@dataclass(frozen=True, slots=True)
class DetectorTimeouts:
    """The settings for time-outs: the silence limit, and the longest time-out."""

    limit_ms: float
    longest_ms: float

    def timeouts(self, owns: int, rank: int, mistakes: int) -> Timeouts:
        """Time-outs for an owner of `owns` partitions, by a standby's rank and mistakes."""
        limit_ms = max(self.limit_ms, MISSED_COMMITS * IDLE_COMMIT_MS)
        commits_ms = max(self.limit_ms, MISSED_COMMITS * idle_commit_ms(owns))

        def waits_ms(shortest_ms: float) -> float:
            waits_ms = shortest_ms * 2.0**mistakes + RANK_MS * rank
            return min(waits_ms, max(shortest_ms, self.longest_ms))

        takes_over_ms = waits_ms(max(commits_ms, TAKES_OVER_MS))
        return Timeouts(limit_ms, waits_ms(limit_ms), waits_ms(commits_ms), takes_over_ms, owns)


# For an owner whose time-outs are not set yet.
_NEVER: Final = Timeouts(inf, inf, inf, inf)


class FailureDetector:
    """Judges the owner of one partition; instants come in, monotonic milliseconds."""

    def __init__(self, partition: int, now_ms: float) -> None:
        self._partition = partition
        self._silence = Silence(inf, now_ms)
        self._stepped_ms = now_ms
        self._watch: HeartbeatWatch | None = None
        # When a heartbeat last said that the partition is well.
        self._well_ms = -inf
        self._timeouts = _NEVER

    def follow(self, watch: HeartbeatWatch | None, timeouts: Timeouts) -> None:
        """Judge by these heartbeats, or by commits alone."""
        if watch is not self._watch:
            self._watch, self._well_ms = watch, -inf
        self._timeouts = timeouts

    def here(self, now_ms: float) -> None:
        """Note that this process runs."""
        self._silence.here(now_ms)

    def heard(self, now_ms: float) -> None:
        """Note that a step has come."""
        self._stepped_ms = now_ms
        self._silence.heard(now_ms)

    def unanswered(self, now_ms: float) -> None:
        """Note that the broker did not answer."""
        self._silence.unanswered(now_ms)

    def looked(self, asked_ms: float, now_ms: float, position: int, end: int) -> None:
        """Note a look at the log: it was read up to `position`, and ends at `end`."""
        self._silence.looked(asked_ms, now_ms, position, end)

    def wants_look(self, now_ms: float) -> bool:
        """Whether to ask for the end of the log: only if heartbeats do not decide."""
        self._judge_alone(now_ms)
        return self._silence.wants_look(now_ms)

    def over(self, now_ms: float) -> bool:
        """Whether the partition is to be taken over."""
        watch, timeouts = self._watch, self._timeouts
        if watch is not None and self._worker_decides(watch):
            waited_ms = min(watch.quiet_ms(now_ms), now_ms - self._stepped_ms)
            if waited_ms >= timeouts.heartbeats_ms:
                return True
        self._judge_alone(now_ms)
        return self._silence.over(now_ms)

    def _worker_decides(self, watch: HeartbeatWatch) -> bool:
        """Whether no worker has gone on with the partition since the heartbeats stopped.

        A step that comes long after the last heartbeat is another worker's, or shows that only the
        heartbeats are lost. An owner without any heartbeat yet is judged by its commits.
        """
        heard_ms = watch.heard_ms
        return heard_ms is not None and self._stepped_ms <= heard_ms + self._timeouts.limit_ms

    def _judge_alone(self, now_ms: float) -> None:
        """Set how long the partition may be silent, judged by itself; no limit if heartbeats
        decide.
        """
        watch, timeouts, silence = self._watch, self._timeouts, self._silence
        if watch is None:
            silence.timeout_ms = timeouts.commits_ms
            return
        if watch.excused(now_ms):
            silence.unanswered(now_ms)
            return
        if watch.vouches(self._partition, now_ms, timeouts.limit_ms):
            self._well_ms = now_ms
            silence.heard(now_ms)
            return
        beats = watch.lives(now_ms, timeouts.limit_ms)
        if not beats and self._worker_decides(watch):
            silence.timeout_ms = inf
            return
        silence.timeout_ms = timeouts.commits_ms
        if beats and self._well_ms <= watch.away_ms:
            # After an absence of the brokers, owners may have to take their partitions over anew.
            silence.timeout_ms = timeouts.takes_over_ms
        elif beats:
            # The partition hangs, on a worker that lives.
            every_ms = max(LOOK_EVERY_MS, LOOK_MS_PER_PARTITION * timeouts.owns)
            silence.look_every_ms = every_ms
            silence.timeout_ms = max(timeouts.heartbeats_ms, LOOKS_BEFORE_OVER * every_ms)
