"""Where a mirror begins, and when it may not: nothing of either side is mixed or overwritten."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.mirror.beginnings import (
    CannotMirror,
    Ends,
    FollowStart,
    see_that_it_follows,
    see_that_it_is_in_time,
    start,
)
from belfry.mirror.marks import Activated, MirrorMark, decode_mark, encode_mark
from belfry.mirror.opening import Opening

A, B = ("cluster-a", "log-a"), ("cluster-b", "log-b")
EMPTY, FULL = Ends(empty=True, end=0), Ends(empty=False, end=120)
POSITIONS = {"changelog": 120, "schedules": 17}
BEGINS = {"changelog": 130, "schedules": 3}
TAKEN_MS = 9
FOLLOWS_A = MirrorMark(*A, B[1], 1, POSITIONS, generation=4, whole=True)


def taken(mark: MirrorMark, *, planned: bool = True) -> MirrorMark:
    """The mark of a side that took over."""
    activated = Activated(TAKEN_MS, planned, BEGINS if planned else {})
    return mark._replace(leaving=True, activated=activated)


@pytest.mark.parametrize("mark", [FOLLOWS_A, taken(FOLLOWS_A), taken(FOLLOWS_A, planned=False)])
def test_a_mark_comes_back_as_it_was(mark: MirrorMark) -> None:
    assert decode_mark(encode_mark(mark)) == mark


def test_an_empty_side_begins_at_the_beginning() -> None:
    assert start(A, B, (None, None), EMPTY) == FollowStart(None, 1)


def test_one_that_follows_goes_on_at_its_mark() -> None:
    assert start(A, B, (None, FOLLOWS_A), FULL) == FollowStart(POSITIONS, 1, 4, resumes=True)


def test_the_way_back_begins_where_the_take_over_was() -> None:
    back = FollowStart(BEGINS, 2, 4, level_ms=TAKEN_MS)
    assert start(B, A, (taken(FOLLOWS_A), None), FULL) == back


def test_a_way_back_that_was_killed_amid_its_first_transaction_begins_once_more() -> None:
    """What was rolled back lies behind all that was carried, and nobody reads it."""
    rolled_back = Ends(empty=False, end=125, behind_last=119)
    assert start(B, A, (taken(FOLLOWS_A), None), rolled_back).positions == BEGINS


def test_a_second_round_goes_on_like_the_first() -> None:
    back = MirrorMark(*B, A[1], 2, BEGINS)
    assert start(B, A, (taken(FOLLOWS_A), back), FULL).resumes
    again = start(A, B, (taken(back), taken(FOLLOWS_A)), Ends(empty=False, end=130))
    assert again == FollowStart(BEGINS, 3, level_ms=TAKEN_MS)


LEAVING_B = MirrorMark(*B, A[1], 2, BEGINS, leaving=True)


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (None, None, None),
        (FOLLOWS_A, None, None),
        (FOLLOWS_A._replace(leaving=True), None, "has begun: end it with"),
        (taken(FOLLOWS_A), None, "is the active one"),
        (taken(FOLLOWS_A), LEAVING_B, "is the active one"),
        # The other side took over in its turn: this one may follow again.
        (taken(FOLLOWS_A), taken(LEAVING_B), None),
    ],
)
def test_a_side_that_takes_over_is_left_alone_until_it_has_given_all_back(
    mine: MirrorMark | None, theirs: MirrorMark | None, said: str | None
) -> None:
    if said is None:
        see_that_it_follows(mine, theirs, 0)
        return
    with pytest.raises(CannotMirror, match=said):
        see_that_it_follows(mine, theirs, 0)


@pytest.mark.parametrize("takes_over", [False, True])
def test_a_lane_of_the_way_back_is_opened_by_the_marks_of_both_sides(takes_over: bool) -> None:
    back = taken(LEAVING_B)
    source: Any = SimpleNamespace(here=(*A, "in-a"), mark=lambda _: back)
    target: Any = SimpleNamespace(
        here=(*B, "in-b"), mark=lambda _: taken(FOLLOWS_A), ends=lambda _: Ends(False, 130)
    )
    begun, _ = Opening(source, target, 0, takes_over=takes_over).start()
    assert (begun.positions, begun.epoch) == (BEGINS, 3)
    source.mark = lambda _: LEAVING_B
    with pytest.raises(CannotMirror, match="is the active one"):
        Opening(source, target, 0, takes_over=takes_over).start()


@pytest.mark.parametrize(
    ("source", "target", "marks", "ends", "said"),
    [
        (A, B, (None, None), FULL, "knows nothing of"),
        (A, B, (None, taken(FOLLOWS_A)), FULL, "is the active one"),
        (A, B, (None, FOLLOWS_A._replace(changelog="log-of-before")), FULL, "made anew"),
        (A, B, (None, FOLLOWS_A._replace(into="log-of-before")), FULL, "made anew"),
        (B, A, (taken(FOLLOWS_A, planned=False), None), FULL, "not carried when"),
        (B, A, (taken(FOLLOWS_A), None), Ends(empty=False, end=121), "not carried when"),
        (B, A, (taken(FOLLOWS_A), None), Ends(False, 125, behind_last=121), "not carried when"),
        (B, (A[0], "made-anew"), (taken(FOLLOWS_A), None), FULL, "knows nothing of"),
    ],
    ids=[
        "foreign",
        "wrong way",
        "source anew",
        "target anew",
        "unplanned",
        "more",
        "more and rolled back",
        "other log",
    ],
)
def test_what_would_mix_or_lose_state_is_refused(
    source: Any, target: Any, marks: Any, ends: Ends, said: str
) -> None:
    with pytest.raises(CannotMirror, match=said):
        start(source, target, marks, ends)


@pytest.mark.parametrize(
    ("mark", "since_ms"),
    [
        (FOLLOWS_A._replace(began_ms=100), 100),
        (FOLLOWS_A._replace(began_ms=100, level_ms=700), 700),
        # The way back begins with what was there at the take-over, however late it begins.
        (FOLLOWS_A._replace(began_ms=5_000, level_ms=TAKEN_MS), TAKEN_MS),
    ],
    ids=["first copy", "level", "way back"],
)
def test_what_was_missed_for_too_long_is_refused(mark: MirrorMark, since_ms: int) -> None:
    see_that_it_is_in_time(mark, 0, since_ms + 50, 50)
    with pytest.raises(CannotMirror, match="partition 0 was level"):
        see_that_it_is_in_time(mark, 0, since_ms + 51, 50)


@pytest.mark.parametrize("planned", [True, False])
def test_a_side_that_was_emptied_begins_anew(planned: bool) -> None:
    theirs = taken(FOLLOWS_A, planned=planned)
    assert start(B, (A[0], "anew"), (theirs, None), EMPTY) == FollowStart(None, 2)
    assert start(A, (B[0], "anew"), (None, FOLLOWS_A), EMPTY) == FollowStart(None, 1)
