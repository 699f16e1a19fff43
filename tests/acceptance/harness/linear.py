"""Whether a history of calls on one schedule is linearizable: each counted at one instant.

    call a   put(1) ├────────┤ 201              Each call has to have counted at one instant between
    call b        get ├──────────┤ 1            its begin and its end, and all of them, in the order
    call c             delete ├────┤ 200        of these instants, have to make sense together.
    call d                       get ├───┤ 404

A call that nobody answered counted at any later instant, or never.  The search is that of Wing and
Gong (*Testing and verifying concurrent objects*, 1993), with Lowe's memory of what was tried
(*Testing for linearizability*, 2017): it tries what may have come first, and goes back where that
leads nowhere.  Schedules are independent, so each is judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

# How far a search goes before it gives up; histories of some hundred calls take some thousand.
MOST: Final = 2_000_000
# There is no schedule under the name.
NOTHING: Final = ""
# What stands for values that no look was answered.
UNSEEN: Final = "\0"


@dataclass(frozen=True, slots=True)
class Call:
    """One call: ``put``, ``create``, ``delete`` or ``get``, and what it was answered.

    `value` is what a put brings, and what a get was answered, `NOTHING` for 404.  `status` is 0
    where there was no answer, and `ended` then infinite.
    """

    name: str
    value: str
    status: int
    began: float
    ended: float

    @property
    def answered(self) -> bool:
        """Whether anybody knows what became of it."""
        return self.status != 0


class TooLong(Exception):
    """The search was given up: nothing can be said."""


def following(state: str, call: Call) -> Iterator[str]:
    """The state behind a call that counts now; none where its answer would be another."""
    there = state != NOTHING
    if call.name == "get":
        if call.value == state:
            yield state
    elif call.name == "delete":
        if call.status in (0, 200 if there else 404):
            yield NOTHING
    elif call.name == "create" and there:
        if call.status in (0, 412):
            yield state
    elif call.status in (0, 200 if there else 201):
        yield call.value


def linearizable(calls: Sequence[Call]) -> bool:
    """Whether there is an order of these calls that agrees with all answers; raises TooLong."""
    asked = _told(calls)
    wanted = sum(1 << at for at, call in enumerate(asked) if call.answered)
    tried: set[tuple[int, str]] = set()
    left = [(0, NOTHING)]
    while left:
        done, state = left.pop()
        if done & wanted == wanted:
            return True
        if (done, state) in tried:
            continue
        tried.add((done, state))
        if len(tried) > MOST:
            raise TooLong(f"{len(asked)} calls")
        left += [
            (done | 1 << at, after)
            for at in _first(asked, done)
            for after in following(state, asked[at])
            # An unanswered call that changes nothing need not have counted.
            if asked[at].answered or after != state
        ]
    return False


def _told(calls: Sequence[Call]) -> list[Call]:
    """The calls that tell something, by their begins; what nobody has seen is one value."""
    seen = {call.value for call in calls if call.name == "get" and call.answered}
    # A look that nobody answered tells nothing.
    told = [call for call in calls if call.answered or call.name != "get"]
    return sorted(
        (call if call.value in seen else replace(call, value=UNSEEN) for call in told),
        key=lambda call: call.began,
    )


def _first(asked: Sequence[Call], done: int) -> Iterator[int]:
    """The calls that may come next: those that began before any that is left had ended.

    Of unanswered ones that do the same, the first that began can stand for all.
    """
    first_end, open_ones = inf, set[tuple[str, str]]()
    for at, call in enumerate(asked):
        if call.began > first_end:
            return
        if done >> at & 1:
            continue
        if not call.answered:
            if (call.name, call.value) in open_ones:
                continue
            open_ones.add((call.name, call.value))
        first_end = min(first_end, call.ended)
        yield at


def shortest(calls: Sequence[Call]) -> list[Call]:
    """The calls up to the first end by which a history cannot be explained any more."""
    ends = sorted(call.ended for call in calls if call.answered)
    for end in ends:
        seen = [
            call if call.ended <= end else Call(call.name, call.value, 0, call.began, inf)
            for call in calls
            if call.began <= end
        ]
        if not linearizable(seen):
            return sorted(seen, key=lambda call: call.began)
    return []
