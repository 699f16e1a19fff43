"""A checkpoint is used where it saves reading and may be believed; two of them are kept."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.store.checkpoint import Checkpoint, CheckpointFile
from belfry.store.checkpoint_choice import (
    QUICKLY_READ,
    UNUSED_MS,
    Sought,
    refusal,
    to_drop,
    to_try,
    unused_files,
    worth_looking,
)
from belfry.store.identity import UNKNOWN_ID

FAR = 10 * QUICKLY_READ
NOW_MS = 10**12
SOUGHT = Sought("cluster-a", "log-1", 3, 2, 0, 0, 2 * FAR, NOW_MS - 1_000)


def made(offset: int = FAR, sha256: str = "ab" * 32, **given: Any) -> Checkpoint:
    files = (CheckpointFile("000012.sst", 1, sha256),)
    plain = Checkpoint("cluster-a", "log-1", 3, 2, offset, NOW_MS, 1, 1, "00" * 16, files)
    return plain._replace(**given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, ""),
        ({"cluster": "cluster-b"}, "cluster-b"),
        ({"changelog": "log-0"}, "log-0"),
        ({"changelog": UNKNOWN_ID}, ""),
        ({"partition": 2}, "partition 2"),
        ({"store_format": 3}, "format 3"),
        ({"written_ms": NOW_MS - 1_001}, "too long ago"),
        ({"written_ms": NOW_MS - 1_000}, ""),
        ({"offset": QUICKLY_READ}, "next to nothing"),
        ({"offset": 3 * FAR}, ""),
    ],
)
def test_a_checkpoint_is_used_only_in_place_of_such_state(given: dict[str, Any], why: str) -> None:
    told = refusal(made(**given), SOUGHT)
    assert why in told
    assert bool(told) == bool(why)
    assert to_try({"a": made(**given)}, SOUGHT) == ([] if why else ["a"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cluster": "cluster-b"}, "it is of topic log-1 in cluster cluster-b"),
        ({"changelog": "log-0"}, "it is of topic log-0 in cluster cluster-a"),
        ({"partition": 2}, "it is of partition 2"),
        ({"store_format": 3}, "its store has format 3, and this release 2"),
        (
            {"written_ms": 0},
            "it was written too long ago: tombstones may be gone, or it was found wrong since",
        ),
        ({"offset": 4}, "the changelog begins at offset 5, and it goes up to 4"),
        ({"offset": 5}, "it goes up to offset 5, which saves next to nothing"),
    ],
)
def test_why_one_is_not_used_is_told_in_words(given: dict[str, Any], why: str) -> None:
    assert refusal(made(**given), SOUGHT._replace(low=5)) == why


def test_one_that_ends_before_the_changelog_begins_would_leave_a_hole() -> None:
    assert "begins at offset" in refusal(made(), SOUGHT._replace(low=FAR + 1))
    found = made(FAR), made(FAR + QUICKLY_READ + 1)
    later = SOUGHT._replace(low=FAR)
    assert [bool(refusal(each, later)) for each in found] == [True, False]


def test_the_one_that_saves_most_is_tried_first() -> None:
    found = {"b": made(2 * FAR), "d": made(FAR), "c": made(2 * FAR, written_ms=NOW_MS + 1)}
    assert to_try(found, SOUGHT) == ["c", "b", "d"]
    assert to_try(found, SOUGHT._replace(offset=FAR)) == ["c", "b"]
    assert to_try(found, SOUGHT._replace(offset=2 * FAR)) == []


@pytest.mark.parametrize(
    ("offset", "low", "end", "worth"),
    [
        (0, 0, QUICKLY_READ, False),
        (0, 0, QUICKLY_READ + 1, True),
        (0, 5, QUICKLY_READ + 5, False),
        (FAR, 0, FAR + QUICKLY_READ, False),
        (FAR, 0, FAR + QUICKLY_READ + 1, True),
        (2 * FAR, 0, FAR, False),
    ],
)
def test_nobody_looks_for_a_checkpoint_where_the_log_is_read_at_once(
    offset: int, low: int, end: int, *, worth: bool
) -> None:
    assert worth_looking(SOUGHT._replace(offset=offset, low=low, end=end)) is worth


def test_two_are_kept() -> None:
    found = {"x": made(1), "y": made(3), "z": made(2), "w": made(3, written_ms=NOW_MS + 1)}
    assert to_drop(found) == ["z", "x"]
    assert to_drop({"x": made(1), "y": made(3)}) == []


def test_a_file_goes_a_day_after_nobody_needs_it() -> None:
    used, young, old = "ab" * 32, "cd" * 32, "ef" * 32
    modified_ms = {used: 0.0, young: NOW_MS - UNUSED_MS, old: NOW_MS - UNUSED_MS - 1.0}
    assert unused_files(modified_ms, [made(sha256=used)], NOW_MS) == [old]
