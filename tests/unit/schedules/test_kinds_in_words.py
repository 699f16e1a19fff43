"""What is told of kinds: which fields they read, and which fields have no meaning for some."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.fields import EMPTY, FIELDS
from belfry.schedules.first_fields import _read_by_kinds
from belfry.schedules.rule_checks import only_recurring
from belfry.schedules.triggers.registry import BY_CODE, KINDS, kind_at_rest, listed


def test_the_fields_that_kinds_read_are_named() -> None:
    """Schemas and pages say so."""
    told = _read_by_kinds()
    assert told == (
        "AT reads at, AFTER delay_ms, EVERY interval_ms, CRON cron and timezone, RRULE rrule and"
        " timezone, AFTER_ACK after_ack, AFTER_GROUP after_group"
    )
    assert FIELDS["kind"].doc == f"Which rule applies: {told}."


def test_a_field_of_what_recurs_is_refused_for_what_fires_once() -> None:
    request: Any = {**EMPTY, "kind": "AT"}
    found = only_recurring("max_fires", request)
    assert (found.code, found.reason) == (
        "bad_window",
        (
            "max_fires is set, and kind AT fires once: leave it empty, or use kind EVERY, CRON or"
            " RRULE."
        ),
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_is_known_by_its_code(kind: Any) -> None:
    assert kind_at_rest(kind.code) is kind


def test_a_kind_of_a_later_release_is_told_as_such() -> None:
    with pytest.raises(ValueError, match="later release") as told:
        kind_at_rest(len(BY_CODE))
    assert str(told.value) == f"Kind {len(BY_CODE)} is of a later release: run that one."


@pytest.mark.parametrize(
    ("names", "told"), [(["A"], "A"), (["A", "B"], "A or B"), (["A", "B", "C"], "A, B or C")]
)
def test_names_are_listed_as_people_do(names: list[str], told: str) -> None:
    assert listed(names, "or") == told
