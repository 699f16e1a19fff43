"""What a worker would stop for, told by copies of the state beside the changelog."""

from __future__ import annotations

from dataclasses import replace

from belfry.recovery.partition_evidence import ahead_of_log, hole_in_changelog
from tests.unit.recovery.test_recovery_plan import HERE, copy, found, manifest

NEWER = HERE._replace(generation=1)


def test_a_copy_beside_an_empty_changelog_says_that_it_was_lost() -> None:
    told = ahead_of_log(found("", copy(60)))
    assert told is not None
    assert told.code == "changelog_lost"
    assert told.what == (
        "the changelog (topic log-1) holds nothing, and d60 keeps 7 schedules that wait in topic"
        " log-0: it was deleted, created anew or emptied."
    )


def test_a_copy_behind_the_end_of_its_changelog_says_that_it_was_cut_off() -> None:
    beyond = replace(copy(60), changelog=HERE.changelog, offset=121)
    told = ahead_of_log(found("", beyond, logged=manifest(40)))
    assert told is not None
    assert told.code == "log_truncated"
    assert "ends at offset 120, and the local state has read it up to offset 121:" in told.what
    # Up to the end of the log nothing is missing.
    assert ahead_of_log(found("", replace(beyond, offset=120), logged=manifest(40))) is None


def test_copies_that_nobody_uses_or_of_before_a_recovery_stop_nobody() -> None:
    aside, former = replace(copy(60), in_use=False), copy(60)
    assert ahead_of_log(found("", aside)) is None
    assert ahead_of_log(found("", former, anchor=NEWER)) is None


def test_a_copy_that_stops_nobody_hides_no_other_one() -> None:
    told = ahead_of_log(found("", replace(copy(60), in_use=False), copy(58)))
    assert told is not None
    assert "d58 keeps 7 schedules" in told.what


def test_a_copy_of_another_changelog_says_nothing_of_the_end_of_this_one() -> None:
    assert ahead_of_log(found("", replace(copy(60), offset=999), logged=manifest(40))) is None


def test_a_hole_is_told_with_what_can_be_done() -> None:
    told = hole_in_changelog("7 wait here, 8 by the manifest")
    assert (told.code, told.what, told.choices) == (
        "hole_in_changelog",
        "the changelog does not hold what its manifests say: 7 wait here, 8 by the manifest.",
        (
            "recover with `belfry recover --from local --data-dir DIR`, or keep what is there with"
            " `belfry recover --from log`."
        ),
    )
