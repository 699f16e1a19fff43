"""Where the fetcher stands in one partition: what its user took, what is fetched, what is doubted.

    taken ≤ next       between them lie answers that nobody has taken yet, `ahead_bytes` of them

An answer *leads on* where it brings whole batches behind `next`, or says for the first time that
there are none yet.  A partition is *doubted* after a failure: before it is asked for again, its
leader says how far the log reaches that was read, for another broker may have cut it off.  It is
*put off* for a moment after a refusal, and its reader is told where nobody has known it for long.
Instants are in seconds of the event loop's clock.
"""

from __future__ import annotations

from typing import Final

from belfry.wire.record_batches import end_of

PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
# For how long a topic may be unknown before its reader is told: it may be new.
UNKNOWN_S: Final = 10.0


class FetchPosition:
    """How far one partition has been taken and fetched."""

    def __init__(self, offset: int) -> None:
        self.taken = self.next = offset
        # Leader's epoch of the last batch (-1: not known), and the end that was met last (-1:
        # none).
        self.epoch = self.met_end = -1
        self.ahead_bytes = 0
        # Instants of the loop's clock, in seconds: when to ask again, since when no broker knows
        # the partition.
        self.not_before = 0.0
        self.unknown_since: float | None = None
        # Whether it has to be asked first if the log was cut off, and whether nothing is fetched
        # any more.
        self.doubted = self.stopped = False

    def may_go_on(self, most_bytes: int) -> bool:
        """Whether more may be asked for, where so many bytes may lie ahead of the reader."""
        return self.ahead_bytes < most_bytes and not self.stopped

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
        self.ahead_bytes += len(data)
        return True

    def took(self, size: int, behind: int) -> None:
        """The reader took an answer of so many bytes, up to an offset."""
        self.ahead_bytes -= size
        self.taken = max(self.taken, behind)

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
