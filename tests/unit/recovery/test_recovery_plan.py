"""Nothing is chosen for the operator, and what is given up is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from belfry.recovery.partition_evidence import CannotRecover, Copy, PartitionEvidence
from belfry.recovery.recovery_plan import Choices, anchor_behind, plan
from belfry.store.identity import Contradiction, Identity
from belfry.store.layout.manifests import Manifest

HERE = Identity("cluster-a", "log-1", "in-1", 0)
NOTHING: Any = None
NO_COPY = "no usable local state in the data directories; give others with --data-dir"
OTHER_INPUT = "the input is not the one that was read; say --accept-input to go on in it"
LOST = (
    "requests 50 to 59 are gone before they were read; accept exactly that with --accept-lost"
    " 3:50-59"
)


def manifest(txn_seq: int, position: int = 50) -> Manifest:
    return Manifest(txn_seq, 1, position, 0, 7, 0, bytes(16))


def copy(txn_seq: int, *, position: int = 50, identity: Identity = HERE) -> Copy:
    return Copy(
        Path(f"d{txn_seq}"), "cluster-a", "log-0", 99, 5, manifest(txn_seq, position), identity,
        in_use=True,
    )  # fmt: skip


def found(
    code: str, *copies: Copy, logged: Manifest | None = None, **more: Any
) -> PartitionEvidence:
    given: dict[str, Any] = {"identity": HERE if logged else None, "low": 0, "end": 100, **more}
    return PartitionEvidence(
        3, HERE, given.pop("anchor", None), NOTHING, logged, given["identity"], 120, False,
        given["low"], given["end"], list(copies), Contradiction(code, "what.", "choices."),
    )  # fmt: skip


def test_the_newest_copy_counts_and_a_recovery_begins_a_generation() -> None:
    planned = plan(found("changelog_lost", copy(55), copy(60), copy(58)), Choices("local"))
    assert planned.copy is not None
    assert planned.copy.manifest.txn_seq == 60
    assert planned.rewrites
    assert planned.identity == HERE._replace(generation=1)
    assert (planned.partition, planned.base, planned.position) == (3, "local", 50)
    assert (planned.before, planned.earlier_input) == (manifest(60), False)
    assert planned.lines == [
        (
            "state of d60: 7 schedules that wait, transaction 60, written 1970-01-01T00:00:00.005Z;"
            " what fired after that fires again, and what was asked after it is read again from the"
            " input"
        ),
        "requests are read on from offset 50",
    ]


@pytest.mark.parametrize(
    ("evidence", "choices", "says"),
    [
        (found("changelog_lost", copy(60)), Choices(), "choose: choices."),
        (found("changelog_lost"), Choices("local"), NO_COPY),
        (
            found("changelog_lost", copy(60)),
            Choices("log"),
            "the changelog holds nothing to recover from; choices.",
        ),
        (
            found("log_truncated", copy(60), logged=manifest(40)),
            Choices(),
            "choose: choices.",
        ),
        (
            found("input_anew", logged=manifest(40), identity=HERE._replace(schedules="in-0")),
            Choices(),
            OTHER_INPUT,
        ),
        (
            found("changelog_lost", copy(60, identity=HERE._replace(schedules="in-0"))),
            Choices("local"),
            OTHER_INPUT,
        ),
        (found("requests_lost", logged=manifest(40), low=60), Choices(), LOST),
        (
            found("requests_lost", logged=manifest(40), low=60),
            Choices(accept_lost={3: (50, 58)}),
            LOST,
        ),
    ],
)
def test_a_choice_that_is_missing_is_named(
    evidence: PartitionEvidence, choices: Choices, says: str
) -> None:
    with pytest.raises(CannotRecover) as refused:
        plan(evidence, choices)
    assert str(refused.value) == says


def test_a_lost_range_that_is_accepted_changes_the_position_alone() -> None:
    evidence = found("requests_lost", logged=manifest(40), low=60)
    planned = plan(evidence, Choices(accept_lost={3: (50, 59)}))
    assert (planned.position, planned.rewrites, planned.earlier_input) == (60, False, False)
    assert planned.identity == HERE
    assert planned.lines == [
        "state of the changelog: transaction 40",
        "requests 50 to 59 are given up as lost",
    ]


def test_a_new_input_is_read_from_its_beginning_and_a_shorter_one_from_its_end() -> None:
    was = HERE._replace(schedules="in-0")
    anew = plan(found("input_anew", logged=manifest(40), identity=was), Choices(accept_input=True))
    assert (anew.position, anew.earlier_input, anew.rewrites) == (0, True, True)
    evidence = found("input_truncated", logged=manifest(40, 150))
    shorter = plan(evidence, Choices(accept_input=True))
    assert (shorter.position, shorter.earlier_input) == (100, True)
    assert shorter.lines[1] == (
        "requests are read from offset 100 of the present input; of the one before, which had been"
        " read up to offset 150, nothing more is taken in"
    )


def test_a_shorter_input_of_which_nobody_knows_whose_it_is_is_read_from_its_beginning() -> None:
    evidence = found("input_truncated", logged=manifest(40, 150), identity=None, low=20)
    planned = plan(evidence, Choices(accept_input=True))
    assert (planned.position, planned.earlier_input) == (20, True)


@pytest.mark.parametrize("position", [60, 100], ids=["its first request", "its end"])
def test_a_position_that_the_input_still_has_needs_no_choice(position: int) -> None:
    evidence = found("log_truncated", copy(60, position=position), low=60)
    planned = plan(evidence, Choices("local"))
    assert (planned.position, planned.earlier_input) == (position, False)
    assert planned.lines[1] == f"requests are read on from offset {position}"


def test_the_log_may_be_believed_against_a_copy_that_is_ahead() -> None:
    planned = plan(found("log_truncated", copy(60), logged=manifest(40)), Choices("log"))
    assert (planned.rewrites, planned.copy, planned.before) == (False, None, manifest(40))
    assert (planned.base, planned.identity.generation) == ("log", 1)
    assert planned.lines[0] == (
        "state of the changelog: transaction 40; what transactions 41 to 60 did is given up: what"
        " they took in is read again from the input, and what they fired fires again"
    )


def test_a_copy_that_is_as_far_as_the_log_loses_nothing() -> None:
    planned = plan(found("log_truncated", copy(40), logged=manifest(40)), Choices("log"))
    assert planned.lines[0] == "state of the changelog: transaction 40"


def test_the_rows_of_a_log_with_a_hole_are_written_again() -> None:
    planned = plan(found("hole_in_changelog", logged=manifest(40)), Choices("log"))
    assert (planned.rewrites, planned.base, planned.identity.generation) == (True, "log", 1)


def test_nothing_goes_on_at_the_end_of_the_input() -> None:
    evidence = found("log_truncated", copy(60), logged=manifest(40), low=20)
    planned = plan(evidence, Choices("nothing", backup="b.jsonl"))
    assert (planned.base, planned.copy, planned.before) == ("nothing", None, None)
    assert (planned.position, planned.rewrites, planned.earlier_input) == (100, True, False)
    assert planned.lines == [
        (
            "no state: no schedule waits, and nothing is known to have fired; then `belfry restore"
            " b.jsonl`"
        ),
        (
            "requests up to offset 99 of the input are given up; those from 20 on can still be read"
            " there, and asked for again"
        ),
    ]
    assert plan(evidence, Choices("nothing")).lines[0] == (
        "no state: no schedule waits, and nothing is known to have fired"
    )


def test_a_second_recovery_begins_another_generation() -> None:
    anchor = HERE._replace(generation=4)
    planned = plan(found("changelog_lost", copy(60), anchor=anchor), Choices("local"))
    assert planned.identity.generation == 5


def test_where_nothing_contradicts_nothing_is_planned() -> None:
    evidence = found("", logged=manifest(40))
    evidence.problem = None
    with pytest.raises(AssertionError, match=r"^nothing contradicts$"):
        plan(evidence, Choices("log"))


def test_an_anchor_that_lacks_what_the_changelog_says_is_behind() -> None:
    """It is written again, and nothing else is done about the partition."""
    later = HERE._replace(generation=1)

    def told(identity: Identity | None, *copies: Copy, **more: Any) -> Identity | None:
        evidence = found("", *copies, logged=manifest(40), identity=identity, **more)
        evidence.problem = None
        return anchor_behind(evidence)

    assert told(HERE) == HERE
    assert told(later, anchor=HERE) == later
    assert told(HERE, anchor=HERE) is None
    assert told(None) is None
    # Somebody has recovered the partition since: its changelog is not what counts.
    assert told(HERE, anchor=later) is None
    assert told(HERE, copy(60, identity=later)) is None
    assert anchor_behind(found("log_truncated", logged=manifest(40))) is None
