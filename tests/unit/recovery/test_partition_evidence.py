"""What a worker would stop for, told by copies of the state beside the changelog."""

from __future__ import annotations

from dataclasses import replace

from belfry.recovery.partition_evidence import ahead_of_log
from tests.unit.recovery.test_recovery_plan import HERE, copy, found, manifest

NEWER = HERE._replace(generation=1)


def test_a_copy_beside_an_empty_changelog_says_that_it_was_lost() -> None:
    told = ahead_of_log(found("", copy(60)))
    assert told is not None
    assert told.code == "changelog_lost"


def test_a_copy_behind_the_end_of_its_changelog_says_that_it_was_cut_off() -> None:
    beyond = replace(copy(60), changelog=HERE.changelog, offset=121)
    told = ahead_of_log(found("", beyond, logged=manifest(40)))
    assert told is not None
    assert told.code == "log_truncated"
    # Up to the end of the log nothing is missing.
    assert ahead_of_log(found("", replace(beyond, offset=120), logged=manifest(40))) is None


def test_copies_that_nobody_uses_or_of_before_a_recovery_stop_nobody() -> None:
    aside, former = replace(copy(60), in_use=False), copy(60)
    assert ahead_of_log(found("", aside)) is None
    assert ahead_of_log(found("", former, anchor=NEWER)) is None
