"""How a lane begins: at its mark, or with a first one; and the facts on carried records."""

from __future__ import annotations

from belfry.mirror.beginnings import CannotMirror, FollowStart, see_that_it_follows, start
from belfry.mirror.marks import GOES_ON, REQUESTS, MirrorMark
from belfry.mirror.sides import Side


class Opening:
    """Decides where the mirror of a partition begins; raises `CannotMirror` where it may not."""

    def __init__(self, source: Side, target: Side, partition: int, *, takes_over: bool) -> None:
        """With `takes_over` it may go on where a take-over has begun."""
        self._source = source
        self._target = target
        self._partition = partition
        self._takes_over = takes_over
        self._theirs = source.mark(partition)

    def start(self) -> tuple[FollowStart, MirrorMark | None]:
        """Where to begin, and the mark of the target."""
        source, target = self._source.here, self._target.here
        mine = self._target.mark(self._partition)
        if not self._takes_over:
            see_that_it_follows(mine, self._theirs, self._partition)
        ends = self._target.ends(self._partition)
        return start(source[:2], target[:2], (self._theirs, mine), ends), mine

    def mark(self, now_ms: int) -> tuple[FollowStart, MirrorMark]:
        """Where to begin, and the mark under which it goes on; asked behind the fence."""
        begun, mine = self.start()
        resumed = mine if begun.resumes else None
        return begun, resumed or self._first_mark(begun, mine, now_ms)

    def _first_mark(self, begun: FollowStart, mine: MirrorMark | None, now_ms: int) -> MirrorMark:
        """The first mark of a partition that begins to follow."""
        target, partition = self._target, self._partition
        positions = begun.positions or {}
        whole = begun.positions is not None
        former = mine.carried if mine is not None and whole else ()
        return MirrorMark(
            *self._source.here[:2], target.here.changelog, begun.epoch, positions,
            begun.generation, whole, begun.level_ms,
            carried=(*former, (target.ends(partition).end, GOES_ON)),
            judged=positions.get(REQUESTS, 0),
            began_ms=now_ms,
            number=_last_number(target, partition) if whole else 0,
            requests_from=target.bounds(REQUESTS, partition).ends()[1],
        )  # fmt: skip


def is_added(side: Side, partition: int) -> bool:
    """Whether a partition came by growth: it is not a home, and may be empty."""
    return 0 < side.grown_from <= partition


def followed(target: Side, partition: int) -> MirrorMark:
    """The mark of a partition; CannotMirror if it has none."""
    mark = target.mark(partition)
    if mark is None:
        raise CannotMirror(f"partition {partition} of this side never followed another cluster.")
    return mark


def number_of(target: Side, partition: int, mark: MirrorMark) -> int:
    """The source's transaction up to which a partition was carried; 0 for none.

    A mark of a release before does not say it, and the last transaction here does.
    """
    return mark.number or (_last_number(target, partition) if mark.whole else 0)


def _last_number(side: Side, partition: int) -> int:
    last = side.last_manifest(partition)
    return 0 if last is None else last.txn_seq
