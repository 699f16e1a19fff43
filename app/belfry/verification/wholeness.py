"""Whether a row may be missing in what was read of a partition, up to a transaction.

A changelog is compacted, so in its older part rows are missing that a later one has replaced.  What
is known to be whole:

    from the beginning    while no offset is missing, but for those that are void
    behind a pair         where a row and the one that replaced it were both read, compaction has
                          not come beyond the second: behind it nothing is missing (`waiting.py`)

Offsets are void that never held a row: ends of transactions, and what was rolled back.  A reader of
what is committed sees a hole where they are, as it does where compaction was:

    offset     811        812    813 to 816     817    818
               manifest   end    rolled back    end    first row of the next transaction
                          └──── void, as the log itself says ────┘

A worker that is killed leaves such a hole in each partition that it owned.  So the log is asked
about a hole, once, as long as all before it is known to be there.
"""

from __future__ import annotations

from collections.abc import Callable

from belfry.verification.standing import Cut, Standing

# Whether each offset from the first one up to before the second is void.
IsVoid = Callable[[int, int], bool]


def nobody_knows(_start: int, _end: int) -> bool:
    """Nobody looks at the log itself: a row may have been at any offset that was not read."""
    return False


class Wholeness:
    """Whether nothing is missing in a partition, from its beginning up to a transaction.

    `is_void` asks the log; `standing` says what was so up to the transaction before.
    """

    def __init__(self, standing: Standing) -> None:
        self.is_void: IsVoid = nobody_knows
        self._standing = standing
        # The hole that was asked about last, and the answer: a transaction is looked at again where
        # its events are waited for.
        self._asked = (0, 0), False

    def up_to(self, cut: Cut) -> bool:
        """Whether nothing is missing before the end of this transaction, the next one."""
        inside = cut.last.offset - cut.first == cut.lying
        return self._standing.contiguous and inside and self._leads_to(cut.first)

    def _leads_to(self, first: int) -> bool:
        """Whether nothing is missing between the last manifest and a transaction's first record."""
        behind = self._standing.manifest_at + 1
        if first <= behind + 1:
            return first == behind + 1
        hole = max(0, behind), first
        if self._asked[0] != hole:
            self._asked = hole, self.is_void(*hole)
        return self._asked[1]
