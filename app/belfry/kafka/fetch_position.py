"""A fetcher's position in one partition: the taken offset, the fetched one, and its doubts.

    taken ≤ next       between them lies what is `ahead`: an answer that is not taken yet

The next answer is asked for once that one is taken. So a slow reader has one answer of each
partition in its memory, and the next one has all records that came meanwhile.

An answer *leads on* if it brings whole batches behind `next`, or says for the first time that there
are none yet. A partition is *doubted* after a failure: before the next request its leader is asked
for the end of the log that was read, because another broker may have cut it off. A partition is
*put off* for a moment after a refusal, or after a small answer if its reader takes sips. If no
broker knows the partition for long, its reader is told. Instants are in seconds of the event loop's
clock.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.wire.record_batches import end_of

# A topic and the number of a partition.
Where = tuple[str, int]
PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
# How long a topic may be unknown before its reader is told: it may be new.
UNKNOWN_S: Final = 10.0
# Bounds of the time after which to look whether an answer was taken.
SOON_S: Final = 0.001
LATE_S: Final = 0.02
# A reader that has taken nothing for this long may hang: its answers do not count for others.
HANGS_S: Final = 0.5
# An answer of fewer stored bytes is a trickle.
SIP_BYTES: Final = 50_000


class OffsetGone(Exception):
    """The log does not have the offset, or not the records that were read before it."""


class Fetched(NamedTuple):
    """The answer of one fetch for one partition.

    `data` are batches as they are stored, empty at the end of the log. `aborted` are producers of
    transactions that were rolled back, and the first offsets of these.  `error` is OffsetGone,
    after which the partition is not followed any more, or ConnectionError.
    """

    where: Where
    offset: int
    behind: int
    data: bytes = b""
    aborted: tuple[tuple[int, int], ...] = ()
    error: Exception | None = None


class FetchPosition:
    """The taken and the fetched offset of one partition."""

    def __init__(self, offset: int) -> None:
        self.taken = self.next = offset
        # Leader's epoch of the last batch (-1: unknown), and the end that was met last (-1: none).
        self.epoch = self.met_end = -1
        # Answers that are not taken yet, and since when there is one.
        self.ahead = self._ahead_bytes = 0
        self.ahead_since = 0.0
        # Whether the last answer with batches was more than a trickle.
        self.flows = True
        # Instants of the loop's clock, in seconds: when to ask again, and since when no broker
        # knows the partition.
        self.not_before = 0.0
        self.unknown_since: float | None = None
        # Whether to ask first if the log was cut off, and whether fetching has stopped.
        self.doubted = self.stopped = False
        # Whether the partition is new, so that it need not wait for a request that is under way for
        # others; and whether a request for it is under way beside that.
        self.joins, self.beside = True, False

    @property
    def may_go_on(self) -> bool:
        """Whether the next answer may be asked for."""
        return not self.ahead and not self.stopped

    def is_no_news(self, data: bytes, last_stable: int) -> bool:
        """Whether an answer without records brings no news.

        Below the last stable offset there are more records, for which the answer had no room; and
        an end that was met before is no news.
        """
        return not data and (self.met_end == self.next or self.next < last_stable)

    def went(self, data: bytes) -> bool:
        """Note fetched batches, or that there are none yet; returns whether that leads on."""
        if not data:
            self.met_end = self.next
            return True
        behind, epoch = end_of(data)
        if behind <= self.next:
            return False
        self.next, self.epoch = behind, epoch
        return True

    def put(self, now_s: float, size: int = 0) -> None:
        """Note that an answer of so many bytes waits for the reader."""
        self.ahead += 1
        self._ahead_bytes += size
        self.ahead_since = now_s

    def was_asked(self, offset: int) -> None:
        """Note that a request from an offset on is over; without records in it, the partition waits
        together with the others from now on.
        """
        self.beside = False
        self.joins = self.joins and self.next > offset

    def look_again_s(self, now_s: float) -> float:
        """The seconds until a look whether the reader has taken it; more for a slow reader."""
        return min(max(now_s - self.ahead_since, SOON_S), LATE_S)

    def waiting_bytes(self, now_s: float) -> int:
        """The bytes that wait for the reader; 0 if it takes too long: it may hang."""
        return self._ahead_bytes if now_s - self.ahead_since < HANGS_S else 0

    def took(self, behind: int) -> None:
        """Note that the reader took an answer, up to an offset."""
        self.ahead -= 1
        self._ahead_bytes = self._ahead_bytes if self.ahead else 0
        self.taken = max(self.taken, behind)

    def sipped(self, size: int, now_s: float, sip_s: float) -> None:
        """Note an answer of so many bytes; a small one puts the partition off to the next sip.

        Sips begin at the same instants for all partitions, so that one request asks for all.
        """
        self.flows = size >= SIP_BYTES
        if sip_s and not self.flows:
            self.not_before = (now_s // sip_s + 1) * sip_s

    def refused(self, now_s: float) -> None:
        """Note a broker's error: look at the log again, after a moment."""
        self.doubted = True
        self.not_before = now_s + PAUSE_S

    def unknown_too_long(self, now_s: float) -> bool:
        """Note that no broker knows the topic; returns True once each time that lasts too long."""
        self.unknown_since = now_s if self.unknown_since is None else self.unknown_since
        if now_s - self.unknown_since < UNKNOWN_S:
            return False
        self.unknown_since = None
        return True


def backoff_s(failures: int) -> float:
    """The seconds to wait before the next try, after so many failures in a row."""
    return float(min(LONGEST_PAUSE_S, PAUSE_S * 2 ** min(failures - 1, 10)))
