"""What errors mean that stand in no table, and what an end says of itself."""

from __future__ import annotations

import pytest

from belfry.kafka.outcome import Aborted, TopicGone, Unknown
from belfry.transactions import errors
from belfry.transactions.errors import Line, Meaning


def test_an_unknown_error_of_a_partition_is_a_refusal_and_of_a_coordinator_nobody_knows() -> None:
    why = "it is not known here"
    assert errors.of_partition(999) == Line("error 999", Meaning.REFUSED, why)
    assert errors.of_coordinator(999) == Line("error 999", Meaning.UNKNOWN, why)
    assert errors.sentence(999) == "error 999: it is not known here"


@pytest.mark.parametrize("code", errors.TABLE)
def test_a_coordinators_error_never_rolls_back(code: int) -> None:
    """What it could not do may have been done by a request before."""
    line, of_coordinator = errors.TABLE[code], errors.of_coordinator(code)
    assert errors.of_partition(code) is line
    if line.meaning in (Meaning.ABORT, Meaning.REFUSED):
        assert of_coordinator == line._replace(meaning=Meaning.UNKNOWN)
    else:
        assert of_coordinator is line


def test_an_end_tells_why_and_blames_nobody_unless_it_is_said() -> None:
    aborted = Aborted("refused")
    assert (str(aborted), aborted.topics, aborted.blocked) == ("refused", {}, False)
    blamed = Aborted("refused", {"a": "no"}, blocked=True)
    assert (blamed.topics, blamed.blocked) == ({"a": "no"}, True)
    unknown = Unknown("lost")
    assert (str(unknown), unknown.blocked) == ("lost", False)
    assert Unknown("lost", blocked=True).blocked
    gone = TopicGone("a")
    assert (str(gone), gone.topic) == ("a is not there any more", "a")
