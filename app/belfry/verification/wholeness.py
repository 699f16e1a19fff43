"""Whether a row may be missing in the read part of a partition, up to a transaction.

A changelog is compacted, so in its older part rows are missing that a later one has replaced.  Two
parts are known to be whole:

    from the beginning    while no offset is missing, except void ones
    behind a pair         where a row and the one that replaced it were both read, compaction has
                          not come beyond the second: behind it no row is missing (`waiting.py`)

Offsets are void if they never held a row: ends of transactions, and records that were rolled back.
A reader of committed records sees a hole there, as it does after compaction:

    offset   811       812 to 814   815       816, 817       818 to 821    822    823
             manifest  rows         manifest  the two ends   rolled back   end    rows
                       └ the end of the one before comes late              └ what a kill leaves

Each transaction has one end.  It lies behind the manifest, or later, where the next transaction was
faster than the brokers' words to one another.  So holes are whole that are no larger than the ends
that have not been met, which are two at most: an owner writes with two producers in turn, and each
waits for its own end.  About others the log itself is asked, as long as all before is known to be
there: each worker that is killed leaves one in each partition that it owned.

Carried records of a mirror have one end for many manifests, so the bound keeps such ends from
excusing rows.

A hole may also have the size of an end, and be a row that compaction has removed, where the end
comes late.  So holes are taken for ends on trust, and the log is asked about the latest of them
before a finding rests on them:

    offset   811       812        813       814       815, 816
             manifest  a row of   a row of  manifest  the two ends, which are one more than was due
                       b, gone    c
                       └ taken for the end of the one before, and 814 counts b: is it a finding?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.verification.standing import Cut, Standing

# Whether each offset from the first one up to before the second is void.
IsVoid = Callable[[int, int], bool]
# Ends that can be to come behind a manifest: its own, and that of the other producer.
MOST_ENDS: Final = 2
# Holes in question at most.  A row that was taken for an end leaves an end too many, and that one
# comes within a few transactions.
MOST_TRUSTED: Final = 16


def nobody_knows(_start: int, _end: int) -> bool:
    """The default, without a look at the log: any unread offset may have held a row."""
    return False


class Wholeness:
    """Whether no row is missing in a partition, from its beginning up to a transaction.

    `is_void` asks the log; `standing` says what was so up to the transaction before. `ends` are
    those that are not met at the end of the transaction that was looked at last, `trusted` the
    holes up to there that were taken for ends.
    """

    def __init__(self, standing: Standing) -> None:
        self.is_void: IsVoid = nobody_knows
        self.ends, self.trusted = standing.ends, standing.trusted
        self._standing = standing
        # The manifest of the transaction that was looked at last, and the answer: it is looked at
        # again where its events are waited for.
        self._known = -1, False

    def up_to(self, cut: Cut) -> bool:
        """Whether no row is missing before the end of this transaction, the next one."""
        if not self._standing.contiguous:
            return False
        if self._known[0] != cut.last.offset:
            self._known = cut.last.offset, self._is_whole(cut)
        return self._known[1]

    def is_sure(self) -> bool:
        """Whether surely no row is missing, up to the transaction that was looked at last.

        The log is asked about each hole that was taken for an end, once, the latest one first.
        """
        if all(self.is_void(*hole) for hole in reversed(self.trusted)):
            self.trusted = []
            return True
        self._known = self._known[0], False
        return False

    def _is_whole(self, cut: Cut) -> bool:
        behind, due = max(0, self._standing.manifest_at + 1), self._standing.ends
        holes = [(behind, cut.first)] if cut.first > behind else []
        holes += cut.holes
        missing = sum(end - start for start, end in holes)
        if missing <= due:
            self.ends = min(due - missing + 1, MOST_ENDS)
            self.trusted = [*self._standing.trusted, *holes][-MOST_TRUSTED:]
            return True
        # An end that is still to come is asked about then.
        self.ends, self.trusted = 1, self._standing.trusted
        # One end more than was due may be that of which a row took the place.
        return all(self.is_void(*hole) for hole in holes) and self.is_sure()
