"""The results of the attempts at a step, and the rows that differ in spite of a backlog.

A backlog leaves in doubt whose turn was next and how many events a step meant to fire.  The row of
a schedule that had its turn, or was asked for, is in no doubt.  So attempts are kept that disagree
with a row of the log:

    row of a schedule that lies in the timeline      all attempts give the same other row, or none
    of later, and is asked for                       has it: differs, in each order of turns
    that is due, and that nobody asks for            an attempt ends it at the same instant, or
                                                     has it at the same occurrence: differs
    that lies in a backlog or behind a lock          in doubt
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from belfry.playback.comparing import StepDifference, difference_at, is_manifest
from belfry.playback.logged import LoggedStep
from belfry.store.layout.locations import (
    IN_PAUSED,
    IN_TIMELINE,
    decode_location,
    is_location,
)
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import (
    depends,
    due_and_seq,
    is_one_shot,
    is_pending,
    last_fires,
)
from belfry.store.layout.records import decode_marker, is_marker

# So many rows of a step are looked at, once it fits in no way.
MOST_ROWS: Final = 1_000
# Where a schedule waits for its instant alone, or for a request.
_FREE: Final = (IN_TIMELINE, IN_PAUSED)


class Standing(NamedTuple):
    """The state of a partition under a changelog key between two steps.

    `row` is as the changelog has it, `local` as the store: a location, where a schedule waits.  How
    many schedules a tenant may have waiting is `bounded` or not.
    """

    row: bytes | None
    local: bytes | None
    bounded: bool = False


class Tried:
    """The results of the attempts at one step: the most events, and the rows that do not fit.

    `others` are rows of the log that no attempt has given so far, with those that the attempts
    gave; `always` are rows that all of them gave and the log has not.
    """

    def __init__(self) -> None:
        self.most_fired = 0
        self.names: set[bytes] = set()
        self.others: dict[bytes, set[bytes | None]] = {}
        self.always: dict[bytes, bytes | None] = {}
        # Attempts that leave a row as it is, of those that do not fit.
        self._left_alone: set[bytes] = set()
        self._begun = False

    def note(
        self,
        step: LoggedStep,
        fired: int,
        rows: Mapping[bytes, bytes | None],
        standing: Callable[[bytes], bytes | None],
    ) -> None:
        """Note the result of an attempt, behind its roll-back: events, and its rows by their keys.

        `standing` tells the row under a changelog key as it was before the step.
        """
        self.most_fired = max(self.most_fired, fired)
        self.names |= rows.keys()
        if not self._begun:
            self._begun = True
            named = [key for key in step.rows if key[:1] != b"\0"]
            self.others = {key: set() for key in named}
            missing = (key for key in rows if key[:1] != b"\0" and key not in step.rows)
            self.always = {key: rows[key] for key in missing if not is_manifest(key)}
        for key in list(self.always):
            if key not in rows:
                del self.always[key]
        for key, given in list(self.others.items()):
            played = rows[key] if key in rows else standing(key)
            if played == step.rows[key]:
                del self.others[key]
            elif key in rows:
                given.add(played)
            else:
                self._left_alone.add(key)

    def is_unanimous(self, key: bytes) -> bool:
        """Whether all attempts gave one and the same row."""
        return key not in self._left_alone and len(self.others[key]) == 1


def certain(
    step: LoggedStep,
    sides: Sequence[tuple[Tried, Callable[[bytes], Standing]]],
    asks: Callable[[bytes], bool],
) -> StepDifference | None:
    """A row that differs in each order of turns, in all branches; None for none.

    `sides` are, of each branch, its attempts, and its state under a changelog key.  `asks` says
    whether a request of the step may name the schedule of a row.
    """
    first, _ = sides[0]
    # A later row of the same name may come, where compaction has removed the one of this step.
    missing = list(first.always) if step.whole else []
    for key in [*first.others, *missing][:MOST_ROWS]:
        if all(_is_otherwise(key, step, *side, asks) for side in sides):
            given = next(iter(first.others.get(key) or [first.always.get(key)]))
            return difference_at(step, key, given)
    return None


def _is_otherwise(
    key: bytes,
    step: LoggedStep,
    tried: Tried,
    standing: Callable[[bytes], Standing],
    asks: Callable[[bytes], bool],
) -> bool:
    """Whether a row is another one than it can be, by the attempts of one branch."""
    row, local, bounded = standing(key)
    given = tried.others.get(key, {tried.always.get(key)})
    if bounded or any(map(_depends, (row, step.rows.get(key), *given))):
        # A fire makes room, and lets go the schedules that wait for it.
        return False
    free = not is_location(local) or decode_location(local).where in _FREE
    is_due = row is not None and is_pending(row) and due_and_seq(row)[0] <= step.written_ms
    if key in tried.always:
        return free and not is_due and asks(key)
    if row is not None and is_due:
        return not asks(key) and _came_otherwise(step.rows[key], row, given, step.written_ms, free)
    return free and key in tried.others and tried.is_unanimous(key) and asks(key)


def _depends(row: bytes | None) -> bool:
    return row is not None and is_pending(row) and depends(row)


def _came_otherwise(
    logged: bytes | None,
    before: bytes,
    given: AbstractSet[bytes | None],
    written_ms: int,
    free: bool,
) -> bool:
    """Whether a due schedule has come to the same place as in an attempt, with another row.

    The end of a one-shot tells its instant.  A recurring schedule that is `free` tells its
    occurrence, and by its last fires the instant.
    """
    if logged is None:
        return False
    found = [each for each in given if each is not None]
    if is_marker(logged):
        ended_ms = decode_marker(logged).ended_ms
        ends = [decode_marker(each).ended_ms for each in found if is_marker(each)]
        return is_one_shot(before) and ended_ms in ends
    if not (free and is_pending(logged)):
        return False
    occurrence, fires = decode_pending(logged).occurrence, last_fires(logged)
    pending = [each for each in found if is_pending(each)]
    alike = [each for each in pending if decode_pending(each).occurrence == occurrence]
    if fires:
        # They tell how late the last one was, and so the instant.
        return any(last_fires(each) == fires for each in alike)
    if len(alike) != 1 or last_fires(alike[0]):
        return False
    # Late ones may be fired as one, up to an instant that is not told: so late it was not.
    due_ms = due_and_seq(before)[0]
    return 2 * (written_ms - due_ms) < due_and_seq(alike[0])[0] - due_ms
