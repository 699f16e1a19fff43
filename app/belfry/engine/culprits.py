"""Culprits: the request or row that a step has failed amid, which must not stop its partition.

A step that raises would raise again with each owner, and nothing else of the partition would fire.
So code that does something for one request, or for one schedule, says so where it raises (`blame`).
The step is forgotten then, and done again from its begin; the blamed one gets no second chance:

    a request     ─► refused (`check_failed`); where that raises too, refused without a word of it
    a due row     ─► held by itself, like one that cannot be understood, until there is a new owner
    a row that a job, a calendar or new zone data is about   ─► passed over there

    12:00:00.000   fires a, b; takes in 17, 18: raises amid 18              forgotten
    12:00:00.004   fires a, b; takes in 17, 18 is refused, takes in 19      committed

An error with nobody to blame, or with a culprit that was blamed before, is raised: the partition is
taken over anew.  So is an error that may be no fault of belfry's: a disk, a store that is damaged,
a record of a later release, no memory left.

Each of them costs the step once more, so one that has dealt with `MOST_DEALT` ends: its time is up,
and walks through names go on with the next step.  A flood of them makes short steps, and no long
one.  How many a step deals with depends only on its input, so a playback of its log comes to the
same end.

A culprit is known until a step in which it was dealt with is committed, or until it was not met
again in many steps.  All of this belongs to the partition's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from traceback import format_tb
from typing import Final, NamedTuple

from belfry.store.readable import UNREADABLE

# Errors of a fault of the program; those of a disk, of a store or of a lock are not among them.
FAULTS: Final = (*UNREADABLE, NameError)
# Errors that are no fault of a request, wherever they are raised.
NO_FAULTS: Final = (MemoryError, OSError)

# The culprit: its kind, then the offset of a request (or of the first of a batch), the record of
# a row, or a name.
Culprit = tuple[str, Hashable]
REQUEST: Final = "request"
PLAIN: Final = "plain requests"
UNTOLD: Final = "request, untold"
DUE: Final = "due"
# The work of a job on a schedule; where it cannot even be refused; work of calendars and zones.
JOB: Final = "job"
JOB_UNTOLD: Final = "job, untold"
CALENDAR: Final = "calendar"
ZONES: Final = "zones"

# A culprit that so many steps have not met again is forgotten: while there is any, requests and
# rows take longer.
MOST_STEPS: Final = 100
# A step that has dealt with so many ends soon.
MOST_DEALT: Final = 8
# So many lines of the way to an error are told.
MOST_LINES: Final = 12


# A part of a step, with all that is given to it.
Part = Callable[[], object]


class Fault(NamedTuple):
    """The failure of a step: the error's type, and the lines that led to it.

    Its message is left out, for it may quote a part of a user's text.
    """

    kind: str
    where: str

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """The report of an error; it is called where the error was caught."""
        kind = type(error).__name__
        return cls(kind, f"{''.join(format_tb(error.__traceback__)[-MOST_LINES:])}{kind}")


class Culprits:
    """The culprits of one partition, and their failures.

    `some` says whether anybody is, which is all that is asked where nothing has ever failed.
    """

    def __init__(self) -> None:
        self.some = False
        self._known: dict[Culprit, Fault] = {}
        self._dealt: set[Culprit] = set()
        self._is_new = False
        self._steps_left = 0

    def blame(self, error: BaseException, *whom: Culprit) -> None:
        """The step has failed amid the first of these that is not blamed yet."""
        for each in whom:
            if each not in self._known:
                self._known[each] = Fault.of(error)
                self.some = self._is_new = True
                self._steps_left = MOST_STEPS
                return

    def take_new(self) -> bool:
        """Whether somebody was blamed since the last call."""
        is_new, self._is_new = self._is_new, False
        return is_new

    def of(self, kind: str, which: Hashable) -> Fault | None:
        """The failure of the step amid this, which is dealt with now; None: there was none."""
        found = self._known.get((kind, which))
        if found is not None:
            self._dealt.add((kind, which))
        return found

    @property
    def last_request(self) -> int | None:
        """The offset of the last request that is blamed; None where none is."""
        found = [which for kind, which in self._known if kind == REQUEST]
        return max((each for each in found if isinstance(each, int)), default=None)

    @property
    def enough(self) -> bool:
        """Whether the step has dealt with so many that it is to end."""
        return len(self._dealt) >= MOST_DEALT

    def aborted(self) -> None:
        """The step is forgotten: nobody was dealt with."""
        self._dealt.clear()

    def committed(self) -> None:
        """The step is committed: the culprits that it has dealt with are forgotten."""
        if not self.some:
            return
        self._steps_left -= 1
        for each in self._dealt if self._steps_left else list(self._known):
            self._known.pop(each, None)
        self._dealt.clear()
        self.some = bool(self._known)


class Attempts:
    """Does the parts of a step, and all of them again where one of them fails amid somebody."""

    def __init__(self, culprits: Culprits) -> None:
        self._culprits = culprits
        self._parts: list[Part] = []

    def begin(self) -> None:
        """A step begins: nothing that was done before is to be done again."""
        self._parts = []

    def do(self, part: Part, forget: Callable[[], object]) -> None:
        """Do a part of the step; `forget` rolls all of it back, and begins it anew."""
        self._parts.append(part)
        try:
            part()
        except FAULTS:
            if not self._culprits.take_new():
                raise
        else:
            return
        while not self._done_again(forget):
            pass

    def _done_again(self, forget: Callable[[], object]) -> bool:
        """Do the parts once more; False: one of them has failed amid somebody else."""
        forget()
        try:
            for part in self._parts:
                part()
        except FAULTS:
            if not self._culprits.take_new():
                raise
            return False
        return True
