"""The reason of a MISSED event tells a number, which is read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.missed import MOST, missed_in, missed_reason

NOW = 1_800_000_000_000
MISSED = LifecycleEvent(
    tenant="t", schedule_id="9 occurrences did not fire, from ", outcome=Outcome.MISSED, at=NOW
)


@pytest.mark.parametrize("number", [1, 2, 62, 31_536_000, MOST])
@pytest.mark.parametrize("code", [None, "late"])
def test_the_number_is_read_from_the_sentence_that_tells_it(number: int, code: str | None) -> None:
    reason = missed_reason(number, NOW, "on: the one of tomorrow fires for them")
    told = replace(MISSED, reason=reason, code=code, due_at=NOW, version=7, request_id="r")
    assert missed_in(encode_lifecycle(told)) == number


@pytest.mark.parametrize(
    "reason",
    [
        None,
        "",
        "0 occurrences did not fire, from ",
        "nobody acknowledged it",
        "it waits for the acknowledgement of '9 occurrences did not fire, from '",
        "9" * 20 + " occurrences",
    ],
)
def test_other_reasons_count_once(reason: str | None) -> None:
    assert missed_in(encode_lifecycle(replace(MISSED, reason=reason))) == 1


def test_a_strangers_number_is_bounded() -> None:
    told = replace(MISSED, reason=missed_reason(10**18, NOW, "on"))
    assert missed_in(encode_lifecycle(told)) == MOST


def test_bytes_that_are_no_event_count_once() -> None:
    body = encode_lifecycle(replace(MISSED, reason=missed_reason(62, NOW, "on")))
    assert {missed_in(body[:size]) for size in range(40)} == {1}
