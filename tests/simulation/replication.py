"""Copies of a log on several brokers: tails that nobody has acknowledged, and elections.

    end       what the leader has
    high      what all replicas in sync have: acks=all is answered, and readers may see it
    shown     `high`, as the leader knows it; a new one may know an older one for a while

            high     end                      high  end
    ──────────┤────────┤      election  ──────────┤──┤        a cut at the edge of a batch between
              └ tail                                          both: what lay behind is gone, and its
                                                              offsets are used again

What was acknowledged stays: who is elected has been in sync.  A marker that is lost is written
again by its coordinator, a batch by its producer, a request by its user, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.broker import Broker, Entry, Log

# Milliseconds until a batch is on all replicas: mostly, and where a follower is slow.
COPIED_MS: Final = (0.5, 4.0)
SLOW_MS: Final = (100.0, 1_500.0)
# Until a new leader knows what its followers have.
UNKNOWN_MS: Final = (2.0, 600.0)
# How soon after it came a batch is struck.
AMID_MS: Final = 4.0
# Where users write.
USERS: Final = "belfry.schedules"
# An acknowledgement is looked for so often.
LOOK_MS: Final = 2.0


class Replicas:
    """The copies of one log."""

    def __init__(self, log: Log, cluster: Cluster) -> None:
        self.high = 0
        self.shown = 0
        # Where each election has cut it.
        self.cuts: list[int] = []
        self._log = log
        self._cluster = cluster
        self._starts: list[int] = []
        self._awaited: list[tuple[int, Callable[[bool], None]]] = []
        self._before = 0
        self._copying = False

    @property
    def told(self) -> bool:
        """Whether the leader says where the log ends: not before all has it that it began with."""
        return not self.cuts or self.shown >= self.cuts[-1]

    def begins_batch(self, offset: int) -> None:
        """A batch begins there: an election loses whole ones."""
        self._starts.append(offset)

    def appended(self, entry: Entry) -> None:
        """A record was appended; one without a transaction is a batch by itself.

        Who writes beside transactions waits here, but for users, who may lose what they send.
        """
        if entry.txn is None:
            self.begins_batch(entry.offset)
            if not self._log.topic.startswith(USERS):
                self._copied(self._log.end, len(self.cuts))
        self._cluster.strike(self._log)
        self._grew()

    def _grew(self) -> None:
        if not self._copying and self.high < self._log.end:
            self._copying = True
            upto, elections = self._log.end, len(self.cuts)
            self._cluster.later(self._cluster.copied_ms(), lambda: self._copied(upto, elections))

    def _copied(self, upto: int, elections: int) -> None:
        self._copying = False
        if elections == len(self.cuts):
            knew = self.shown == self.high
            self._before, self.high = self.high, max(self.high, upto)
            self.shown = self.high if knew else self.shown
            self._starts = [start for start in self._starts if start >= self.high]
            self._answer()
        self._grew()

    def when(self, offset: int, then: Callable[[bool], None]) -> None:
        """Call when the record there is on all replicas, or lost."""
        self._awaited.append((offset, then))

    def _answer(self) -> None:
        done = [each for each in self._awaited if each[0] < self.high]
        self._awaited = [each for each in self._awaited if each[0] >= self.high]
        for _, then in done:
            then(True)
        self._cluster.wake(self._log)

    def is_lost(self, last: int, elections: int) -> bool:
        """Whether a record that was appended after so many elections has been lost."""
        return any(cut <= last for cut in self.cuts[elections:])

    def elect(self) -> list[Entry]:
        """Another replica leads from now on; what was lost."""
        random, log = self._cluster.random, self._log
        cut = random.choice([self.high, log.end, *self._starts])
        self.cuts.append(cut)
        self._starts = [start for start in self._starts if start < cut]
        lost = log.cut(cut)
        self.shown = min(self.shown, random.choice((self.high, self._before)))
        if self.shown < self.high:
            self._cluster.covered("an end went back")
        elections = len(self.cuts)
        self._cluster.later(random.uniform(*UNKNOWN_MS), lambda: self._heard(elections))
        gone = [each for each in self._awaited if each[0] >= cut]
        self._awaited = [each for each in self._awaited if each[0] < cut]
        for _, then in gone:
            self._cluster.covered("a marker lost")
            # The coordinator finds the new leader after a while.
            self._cluster.later(random.uniform(1.0, 100.0), lambda then=then: then(False))  # type: ignore[misc]
        self._grew()
        return lost

    def _heard(self, elections: int) -> None:
        if elections == len(self.cuts):
            self.shown = self.high
            self._cluster.wake(self._log)


class Cluster:
    """What the copies of all logs have in common."""

    def __init__(self, broker: Broker, random: Random, slow: float) -> None:
        """By the chance `slow` followers take long."""
        self.random = random
        self.struck: list[str] = []
        self.slow = slow
        self._broker = broker
        # Begins of topics: the next batch of such a one has its leader's broker go away.
        self.strikes: list[str] = []
        # Elects another leader of all that the leader of a log led.
        self.goes: Callable[[Log], None] = self.elect
        # What becomes of requests that users have sent, and that were lost.
        self.lost: Callable[[Log, list[Entry]], None] = lambda _log, _lost: None

    def later(self, ms: float, action: Callable[[], None]) -> None:
        """Do something in so many milliseconds."""
        self._broker.stage.later(ms, action)

    def wake(self, log: Log) -> None:
        """Wake who reads a log."""
        self._broker.wake(log)

    def covered(self, what: str) -> None:
        """Count what came about."""
        self.struck.append(what)

    def copied_ms(self) -> float:
        """How long followers take for a batch."""
        slow = self.random.random() < self.slow
        return self.random.uniform(*(SLOW_MS if slow else COPIED_MS))

    def heal(self) -> None:
        """No broker goes away any more, and followers are quick."""
        self.strikes.clear()
        self.slow = 0.0

    def strike(self, log: Log) -> None:
        """Have the broker go away to which a batch came, where that is asked for."""
        for begin in self.strikes:
            if log.topic.startswith(begin):
                self.strikes.remove(begin)
                self.later(self.random.uniform(0.0, AMID_MS), lambda: self.goes(log))
                return

    def elect(self, log: Log) -> None:
        """Elect another leader of a log."""
        assert log.replicas is not None
        lost = log.replicas.elect()
        if not lost:
            return
        self.covered("a tail lost")
        if any(entry.txn is not None and not entry.marker for entry in lost):
            self.covered("a batch lost")
        mine = [entry for entry in lost if entry.txn is None]
        if mine:
            self.lost(log, mine)
