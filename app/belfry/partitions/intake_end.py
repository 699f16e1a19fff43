"""The offset up to which a new owner takes requests in before it fires.

    taken in ──────────┬ open transaction ┬── requests behind it ──┐
        last stable offset                                     log end

A cancel that is in the log counts, so the owner takes in all requests that the log held when it was
asked. It waits for open transactions of belfry's producers: such a transaction may hold a request
that another partition's owner sent home, and it ends with that owner or by its time-out. Requests
behind a stranger's transaction cannot be read, maybe for a quarter of an hour. Due events do not
wait for them, once all requests before the transaction have been taken in. Such a transaction
counts only where it begins exactly at the position: one that begins before the position has ended
since, and the requests behind it can be read.

An example. The partition had no owner for a minute, and `a` was due meanwhile:

    12:00:00  the former owner dies; a is due at 12:00:30
    12:00:20  CANCEL a is written, offset 99          no owner takes it in
    12:01:00  a new owner: the log ends at 100
    12:01:00  requests up to 100 are taken in, CANCEL a among them
    12:01:00  firing begins: a does not fire, because its cancel was in time
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from belfry.kafka.holders import OpenTransaction

# An end that is younger than this is not asked for again.
FRESH_END_MS: Final = 250
# How often the end is asked for at most, so that a flood of requests does not delay firing for
# long.
MOST_ENDS: Final = 6


class IntakeEnd:
    """The end that a new owner has to reach; asked for anew while the intake takes time.

    It is used by the partition's thread alone. Offsets are those of the input.
    """

    def __init__(
        self,
        end: int,
        log_end: Callable[[], int],
        stranger: Callable[[], OpenTransaction | None],
    ) -> None:
        """`end` is the end of the log now; `stranger` finds a stranger's open transaction."""
        self._end = end
        self._log_end = log_end
        self._stranger = stranger
        self._asked = 1
        self._asked_ms = 0.0

    def reached(self, position: int) -> bool:
        """Whether all requests of the log have been taken in, or all that can be read."""
        if position >= self._end:
            return True
        held = self._stranger()
        if held is None or held.start_offset != position:
            return False
        self._end, self._asked = position, MOST_ENDS
        return True

    def fresh(self, position: int, now_ms: float) -> bool:
        """Whether the end that was reached is not old.

        The intake may take seconds. Cancels that come meanwhile, of events that will be overdue at
        its end, count.  A flood that outruns this owner does not hold up firing for long.
        """
        if now_ms - self._asked_ms <= FRESH_END_MS or self._asked >= MOST_ENDS:
            return True
        self._end, self._asked_ms = self._log_end(), now_ms
        self._asked += 1
        return position >= self._end
