"""Where the mirror of a partition begins, or why it may not: by the records on both sides.

    target's mark        source's mark              target's changelog    the mirror
    follows this source  not ahead                  as it was carried     goes on at its positions
    none, or older       none                       empty                 begins at the beginning
    none, or older       took over from this side,  as it was then        begins where the take-over
                         with all carried                                 was: the way back
    took over            not after that             -                     refused: the sides are
                                                                          the wrong way round
    anything else                                   holds something       refused: it would be mixed

"Holds something" means records that were not carried: state of another belfry, or records of this
side from before a take-over in which not all had been carried. `belfry mirror lost` lists that, and
then it has to be deleted by hand, for no mirror may be the one that destroys the only copy.

One that may begin comes too late if the source has forgotten later deletions: a changelog keeps
tombstones for some time, and a mirror that misses one keeps a schedule that is over
(`see_that_it_is_in_time`).
"""

from __future__ import annotations

from typing import NamedTuple

from belfry.mirror.marks import CHANGELOG, MirrorMark, UnknownMark, decode_mark


class CannotMirror(Exception):
    """A mirror is not possible as it was asked for; the message says what to do."""


def mark_in(value: bytes | None, where: str) -> MirrorMark | None:
    """The mark in the last record of its topic, if there is one; CannotMirror for a bad one."""
    try:
        return None if value is None else decode_mark(value)
    except UnknownMark as error:
        raise CannotMirror(f"{where}: {error}") from error


class Ends(NamedTuple):
    """The content of a target's changelog: whether it has any record, and where it ends.

    `behind_last` is the offset behind its last committed record. Between it and the end may be what
    a transaction left that was rolled back; None means that nothing is.
    """

    empty: bool
    end: int
    behind_last: int | None = None

    @property
    def content(self) -> int:
        """The offset behind all that readers of committed records find."""
        return self.end if self.behind_last is None else self.behind_last


class FollowStart(NamedTuple):
    """Where a partition's mirror begins: offsets by kind of topic; None: each at its first one.

    `resumes` says that this goes on behind the records carried before, under the same mark. All
    records that the source had by `level_ms` (epoch ms) are here; 0 if that is not known.
    """

    positions: dict[str, int] | None
    epoch: int
    generation: int = 0
    resumes: bool = False
    level_ms: int = 0


def active_epoch(mark: MirrorMark | None) -> int:
    """The epoch in which a side became the active one; 0 for one that always was, or never is."""
    return mark.epoch if mark is not None and mark.activated is not None else 0


def see_that_it_follows(mine: MirrorMark | None, theirs: MirrorMark | None, partition: int) -> None:
    """Raise `CannotMirror` where a take-over of a partition has begun, by the target's mark.

    A side that took over and gave all back, as the source's mark `theirs` says, may follow again.
    """
    if mine is None or not mine.leaving:
        return
    if mine.activated is None:
        raise CannotMirror(
            f"a take-over of partition {partition} has begun: end it with `belfry mirror"
            " take-over --apply`."
        )
    if active_epoch(mine) > active_epoch(theirs):
        raise CannotMirror(_ACTIVE)


def see_that_it_is_in_time(mark: MirrorMark, partition: int, now_ms: int, kept_ms: int) -> None:
    """Raise `CannotMirror` if a partition's mark has missed records older than `kept_ms`."""
    late_ms = now_ms - (mark.level_ms or mark.began_ms)
    if late_ms > kept_ms:
        raise CannotMirror(
            f"partition {partition} was level with the source {_hours(late_ms)} ago, and"
            f" {_hours(kept_ms)} are allowed: what the source deleted since may be forgotten there,"
            " so that schedules that are over would fire here. Where a first copy or a pause takes"
            " longer, raise delete.retention.ms of the source's changelog before. " + _MADE_ANEW
        )


def _hours(ms: int) -> str:
    return f"{ms / 3_600_000:.1f} h"


def start(
    source: tuple[str, str],
    target: tuple[str, str],
    marks: tuple[MirrorMark | None, MirrorMark | None],
    ends: Ends,
) -> FollowStart:
    """Where to begin; raises `CannotMirror`.

    `source` and `target` are the ids of cluster and changelog of each side, and `marks` are theirs.
    """
    theirs, mine = marks
    epoch = active_epoch(theirs) + 1
    if active_epoch(mine) >= epoch:
        raise CannotMirror(_ACTIVE)
    emptied = ends.empty and (mine is None or mine.into != target[1])
    if mine is not None and mine.activated is None and mine.epoch == epoch and not emptied:
        if (mine.source, mine.changelog, mine.into) == (*source, target[1]):
            return FollowStart(mine.positions, epoch, mine.generation, resumes=True)
        raise CannotMirror(
            f"changelog {mine.into} follows {mine.changelog} of cluster {mine.source}, and this"
            f" would be {target[1]} behind {source[1]} of {source[0]}: one of them was deleted and"
            " made anew, or is another belfry's. " + _MADE_ANEW
        )
    if ends.empty:
        return FollowStart(None, epoch)
    taken = None if theirs is None else theirs.activated
    if taken is not None and theirs is not None and (theirs.source, theirs.changelog) == target:
        if taken.planned and theirs.positions[CHANGELOG] >= ends.content:
            return FollowStart(taken.begins, epoch, theirs.generation, level_ms=taken.at_ms)
        raise CannotMirror(
            "this side holds what was not carried when the other one took over. `belfry mirror"
            " lost` lists it. " + _MADE_ANEW
        )
    raise CannotMirror("this side holds state that the source knows nothing of. " + _MADE_ANEW)


_ACTIVE = (
    "this side took over later than the other one, so it is the active one: name the other one as"
    " the target, and this one as the source."
)
_MADE_ANEW = (
    "To follow the source from its beginning, stop the workers of this side, delete its topics"
    " changelog, schedules, lifecycle, rejected and mirror, and create them anew with `belfry"
    " topics create`."
)
