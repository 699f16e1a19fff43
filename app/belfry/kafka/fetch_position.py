"""Where the fetcher stands in one partition: what its user took, what is fetched, what is doubted.

    taken ≤ next       between them lies what is `ahead`: an answer that nobody has taken yet

More is asked for once that one is taken.  So a reader that is slow has one answer of each partition
in its memory, and the next one is as large as what has come meanwhile.

An answer *leads on* where it brings whole batches behind `next`, or says for the first time that
there are none yet.  A partition is *doubted* after a failure: before it is asked for again, its
leader says how far the log reaches that was read, for another broker may have cut it off.  It is
*put off* for a moment after a refusal, or after a small answer where its reader takes sips, and its
reader is told where nobody has known it for long.  Instants are in seconds of the event loop's
clock.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.wire.record_batches import end_of

# A topic and the number of a partition.
Where = tuple[str, int]
PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
# For how long a topic may be unknown before its reader is told: it may be new.
UNKNOWN_S: Final = 10.0
# Bounds of the time after which to look whether an answer was taken.
SOON_S: Final = 0.001
LATE_S: Final = 0.02
# Who has taken nothing for so long may hang: others go on as if nothing of it were there.
HANGS_S: Final = 0.5
# What brings fewer bytes, as they are stored, is a trickle.
SIP_BYTES: Final = 50_000


class OffsetGone(Exception):
    """The log does not hold the offset, or not what was read before it."""


class Fetched(NamedTuple):
    """What one fetch brought of one partition.

    `data` are batches as they are stored, and nothing where the end has been met.  `aborted` are
    producers, and the offsets at which their transactions begin that were rolled back.  `error` is
    OffsetGone, after which the partition is followed no more, or ConnectionError.
    """

    where: Where
    offset: int
    behind: int
    data: bytes = b""
    aborted: tuple[tuple[int, int], ...] = ()
    error: Exception | None = None


class FetchPosition:
    """How far one partition has been taken and fetched."""

    def __init__(self, offset: int) -> None:
        self.taken = self.next = offset
        # Leader's epoch of the last batch (-1: not known), and the end that was met last (-1:
        # none).
        self.epoch = self.met_end = -1
        # Answers that nobody has taken yet, and since when there is one.
        self.ahead = self._ahead_bytes = 0
        self.ahead_since = 0.0
        # Whether the last answer that brought something was no trickle.
        self.flows = True
        # Instants of the loop's clock, in seconds: when to ask again, since when no broker knows
        # the partition.
        self.not_before = 0.0
        self.unknown_since: float | None = None
        # Whether it has to be asked first if the log was cut off, and whether nothing is fetched
        # any more.
        self.doubted = self.stopped = False
        # Whether it is new, so that it need not wait for a request that is under way for others;
        # and whether a request for it is under way beside that.
        self.joins, self.beside = True, False

    @property
    def may_go_on(self) -> bool:
        """Whether more may be asked for."""
        return not self.ahead and not self.stopped

    def is_no_news(self, data: bytes, last_stable: int) -> bool:
        """Whether an answer without records says nothing new.

        Below the last stable offset there is more, for which the answer had no room; and an end
        that was met before is no news.
        """
        return not data and (self.met_end == self.next or self.next < last_stable)

    def went(self, data: bytes) -> bool:
        """Batches were fetched, or none because there are none yet; whether that leads on."""
        if not data:
            self.met_end = self.next
            return True
        behind, epoch = end_of(data)
        if behind <= self.next:
            return False
        self.next, self.epoch = behind, epoch
        return True

    def put(self, now_s: float, size: int = 0) -> None:
        """An answer of so many bytes waits for the reader."""
        self.ahead += 1
        self._ahead_bytes += size
        self.ahead_since = now_s

    def was_asked(self, offset: int) -> None:
        """A request for it from an offset on is over; where that brought nothing, it waits from now
        on together with the others.
        """
        self.beside = False
        self.joins = self.joins and self.next > offset

    def look_again_s(self, now_s: float) -> float:
        """After how long to look whether the reader has taken it: soon, later where it is slow."""
        return min(max(now_s - self.ahead_since, SOON_S), LATE_S)

    def waiting_bytes(self, now_s: float) -> int:
        """How much waits for its reader; nothing where that one takes long: it may hang."""
        return self._ahead_bytes if now_s - self.ahead_since < HANGS_S else 0

    def took(self, behind: int) -> None:
        """The reader took an answer, up to an offset."""
        self.ahead -= 1
        self._ahead_bytes = self._ahead_bytes if self.ahead else 0
        self.taken = max(self.taken, behind)

    def sipped(self, size: int, now_s: float, sip_s: float) -> None:
        """An answer of so many bytes has come; after a small one it is put off to the next sip.

        Sips begin at the same instants for all partitions, so that one request asks for all.
        """
        self.flows = size >= SIP_BYTES
        if sip_s and not self.flows:
            self.not_before = (now_s // sip_s + 1) * sip_s

    def refused(self, now_s: float) -> None:
        """A broker answered with an error: look at the log again, after a moment."""
        self.doubted = True
        self.not_before = now_s + PAUSE_S

    def unknown_too_long(self, now_s: float) -> bool:
        """Nobody knows the topic; whether that is so for long, which is told once each time."""
        self.unknown_since = now_s if self.unknown_since is None else self.unknown_since
        if now_s - self.unknown_since < UNKNOWN_S:
            return False
        self.unknown_since = None
        return True


def backoff_s(failures: int) -> float:
    """How long to wait before the next try, after so many failures in a row."""
    return float(min(LONGEST_PAUSE_S, PAUSE_S * 2 ** min(failures - 1, 10)))
