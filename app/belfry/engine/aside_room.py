"""How much may be set aside: requests and bytes, by lane and by account.

A tenant's lane holds so many requests and bytes; further ones are refused.  The lanes of strangers
share as much, for anybody can show a name.  Each of them may have a third of the free room, so
there is always some left for a lane that has none yet:

    lanes that take what they may      1     2     4     16     255
    each has of 10 000 requests     2500  2000  1428    526      38
    left for the next lane          1875  1500  1071    395      29

A tenant that sends much delays only itself, and a stranger that shows a thousand names gets less by
each of them.  `claims.py` explains lanes and accounts, `aside.py` the requests that are set aside.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from belfry.engine.claims import NOBODY, account_of
from belfry.schedules.rejections import Rejection

MOST_RECORDS: Final = 10_000
MOST_BYTES: Final = 16_000_000
MOST_RECORD_BYTES: Final = 1_000_000
# A lane of strangers may have one part in so many of the room that is left free for all of them.
STRANGERS_PARTS: Final = 3


class AsideRoom:
    """How much is set aside, in requests and bytes, by lane and by account.

    A batch is parted on a copy.  So requests that it would set aside count for its own later
    requests, before any of them is set aside for good.
    """

    def __init__(self) -> None:
        self._records: Counter[bytes] = Counter()
        self._bytes: Counter[bytes] = Counter()

    def copy(self) -> AsideRoom:
        """The same, to count on."""
        other = AsideRoom()
        other._records, other._bytes = self._records.copy(), self._bytes.copy()
        return other

    def add(self, lane: bytes, size: int, count: int = 1) -> None:
        """So much is set aside, or less with a negative count."""
        for name in (lane,) if account_of(lane) == lane else (lane, NOBODY):
            self._records[name] += count
            self._bytes[name] += count * size

    def problem(self, lane: bytes, size: int) -> Rejection | None:
        """Why a request of this size cannot be set aside in a lane, or None."""
        if size > MOST_RECORD_BYTES:
            what = f"The request takes {size} bytes, and {MOST_RECORD_BYTES} can be set aside"
        elif account_of(lane) != NOBODY:
            what = self._fits(lane, size, MOST_RECORDS, MOST_BYTES)
            what = what and f"{what} of the same tenant"
        else:
            # The room that is left beside this request; the lane may have at most so much with it.
            records = (MOST_RECORDS - self._records[NOBODY] - 1) // STRANGERS_PARTS
            most_bytes = (MOST_BYTES - self._bytes[NOBODY] - size) // STRANGERS_PARTS
            what = self._fits(lane, size, records, most_bytes)
            what = what and f"{what} of senders that show the same name, whom nobody knows,"
        if not what:
            return None
        reason = f"{what} until the registry has told of a schema: send the request again later."
        return Rejection("schema_unavailable", reason)

    def _fits(self, lane: bytes, size: int, records: int, most_bytes: int) -> str:
        """The content of a lane for which one more request is too much; else nothing."""
        count, before = self._records[lane], self._bytes[lane]
        if count < records and before + size <= most_bytes:
            return ""
        return f"{count} requests of {before} bytes are set aside already"


def taken_place(offset: int) -> Rejection:
    """Why nothing more can be set aside under an offset; one row must not replace another."""
    reason = (
        f"A request of a former input topic waits under offset {offset}, and this one would have to"
        " wait as well: send it again later."
    )
    return Rejection("schema_unavailable", reason)
