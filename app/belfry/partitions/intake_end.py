"""Up to where requests are taken in before a new owner fires.

    taken in ──────────┬ open transaction ┬── requests behind it ──┐
        last stable offset                                     log end

A cancel that is in the log counts, so all is taken in that the log held when it was asked, and what
a producer of belfry has open is waited for: it may be a request that another partition's owner sent
home, and it ends with that owner or by its time-out. What lies behind a stranger's transaction can
be read by nobody, maybe for a quarter of an hour. Events that are due do not wait for that, once
all that lies before it has been taken in. Such a transaction counts only where it begins exactly at
the position: one that begins before it has ended since, and what follows it can be read.

An example. The partition had no owner for a minute, and `a` was due meanwhile:

    12:00:00  the former owner dies; a is due at 12:00:30
    12:00:20  CANCEL a is written, offset 99          nobody takes it in
    12:01:00  a new owner: the log ends at 100
    12:01:00  requests up to 100 are taken in, CANCEL a among them
    12:01:00  firing begins: a does not fire, for its cancel was in time
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from belfry.kafka.holders import OpenTransaction

# An end that was asked for more recently counts without another question.
FRESH_END_MS: Final = 250
# Ends that are asked for at most, so that a flood of requests does not keep the owner from firing.
MOST_ENDS: Final = 6


class IntakeEnd:
    """The end that a new owner has to reach; asked anew while taking in takes time.

    It is used by the partition's thread alone. Offsets are those of the input.
    """

    def __init__(
        self,
        end: int,
        log_end: Callable[[], int],
        stranger: Callable[[], OpenTransaction | None],
    ) -> None:
        """`end` is where the log ends now; `stranger` who else holds readers back, if anybody."""
        self._end = end
        self._log_end = log_end
        self._stranger = stranger
        self._asked = 1
        self._asked_ms = 0.0

    def reached(self, position: int) -> bool:
        """Whether all has been taken in that the log held, or all of it that can be read."""
        if position >= self._end:
            return True
        held = self._stranger()
        if held is None or held.start_offset != position:
            return False
        self._end, self._asked = position, MOST_ENDS
        return True

    def fresh(self, position: int, now_ms: float) -> bool:
        """Whether the end that was reached is not old.

        Taking in may take seconds, in which cancels come of what will be overdue at its end: they
        count.  A flood that outruns this owner does not hold up firing for long.
        """
        if now_ms - self._asked_ms <= FRESH_END_MS or self._asked >= MOST_ENDS:
            return True
        self._end, self._asked_ms = self._log_end(), now_ms
        self._asked += 1
        return position >= self._end
