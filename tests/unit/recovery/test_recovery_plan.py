"""Nothing is chosen for the operator, and what is given up is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from belfry.recovery.partition_evidence import CannotRecover, Copy, PartitionEvidence
from belfry.recovery.recovery_plan import Choices, plan
from belfry.store.identity import Contradiction, Identity
from belfry.store.layout.manifests import Manifest

HERE = Identity("cluster-a", "log-1", "in-1", 0)
NOTHING: Any = None


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
    assert planned.position == 50
    assert "7 schedules that wait, transaction 60" in planned.lines[0]


@pytest.mark.parametrize(
    ("evidence", "choices", "says"),
    [
        (found("changelog_lost", copy(60)), Choices(), "choose: choices."),
        (found("changelog_lost"), Choices("local"), "--data-dir"),
        (found("changelog_lost", copy(60)), Choices("log"), "holds nothing"),
        (found("log_truncated", copy(60), logged=manifest(40)), Choices(), "choose"),
        (
            found("input_anew", logged=manifest(40), identity=HERE._replace(schedules="in-0")),
            Choices(),
            "--accept-input",
        ),
        (
            found("changelog_lost", copy(60, identity=HERE._replace(schedules="in-0"))),
            Choices("local"),
            "--accept-input",
        ),
        (
            found("requests_lost", logged=manifest(40), low=60),
            Choices(),
            "--accept-lost 3:50-59",
        ),
        (
            found("requests_lost", logged=manifest(40), low=60),
            Choices(accept_lost={3: (50, 58)}),
            "--accept-lost 3:50-59",
        ),
    ],
)
def test_a_choice_that_is_missing_is_named(
    evidence: PartitionEvidence, choices: Choices, says: str
) -> None:
    with pytest.raises(CannotRecover) as refused:
        plan(evidence, choices)
    assert says in str(refused.value)


def test_a_lost_range_that_is_accepted_changes_the_position_alone() -> None:
    evidence = found("requests_lost", logged=manifest(40), low=60)
    planned = plan(evidence, Choices(accept_lost={3: (50, 59)}))
    assert (planned.position, planned.rewrites, planned.earlier_input) == (60, False, False)
    assert planned.identity == HERE
    assert "requests 50 to 59 are given up as lost" in planned.lines


def test_a_new_input_is_read_from_its_beginning_and_a_shorter_one_from_its_end() -> None:
    was = HERE._replace(schedules="in-0")
    anew = plan(found("input_anew", logged=manifest(40), identity=was), Choices(accept_input=True))
    assert (anew.position, anew.earlier_input, anew.rewrites) == (0, True, True)
    evidence = found("input_truncated", logged=manifest(40, 150))
    shorter = plan(evidence, Choices(accept_input=True))
    assert (shorter.position, shorter.earlier_input) == (100, True)


def test_the_log_may_be_believed_against_a_copy_that_is_ahead() -> None:
    planned = plan(found("log_truncated", copy(60), logged=manifest(40)), Choices("log"))
    assert (planned.rewrites, planned.copy, planned.before) == (False, None, manifest(40))
    assert planned.identity.generation == 1
    assert "transactions 41 to 60" in planned.lines[0]


def test_nothing_goes_on_at_the_end_of_the_input() -> None:
    planned = plan(found("changelog_lost"), Choices("nothing", backup="b.jsonl"))
    assert (planned.position, planned.before, planned.rewrites) == (100, None, True)
    assert "belfry restore b.jsonl" in planned.lines[0]
    assert "up to offset 99" in planned.lines[1]


def test_a_second_recovery_begins_another_generation() -> None:
    anchor = HERE._replace(generation=4)
    planned = plan(found("changelog_lost", copy(60), anchor=anchor), Choices("local"))
    assert planned.identity.generation == 5
