"""A flood of refusals stays small in the log, and hides nobody else's."""

from __future__ import annotations

from typing import Any

from belfry.audit.refusals import FIRST, INTERVAL_MS, MOST_KINDS, Refusals
from belfry.wire.audit import AuditEvent

T0 = 1_800_000_000_000


def refusal(at: int = T0, **fields: Any) -> AuditEvent:
    given = {"status": 401, "code": "unauthorized", "source_address": "192.0.2.1", **fields}
    return AuditEvent(at=at, action="read", result="REFUSED", **given)


def test_the_first_are_written_in_full_and_the_others_as_one_sum() -> None:
    refusals = Refusals()
    taken = [refusals.take(refusal(T0 + each, object=str(each))) for each in range(10)]
    assert [each is not None for each in taken] == [True] * FIRST + [False] * (10 - FIRST)
    assert refusals.over(T0 + INTERVAL_MS - 1) == []
    (total,) = refusals.over(T0 + INTERVAL_MS)
    assert (total.action, total.count, total.status, total.code) == (
        "refusals",
        10 - FIRST,
        401,
        "unauthorized",
    )
    assert (total.source_address, total.object, total.caller) == ("192.0.2.1", None, "")
    assert refusals.over(T0 + 2 * INTERVAL_MS) == []
    assert refusals.take(refusal(T0 + INTERVAL_MS)) is not None


def test_what_was_not_held_back_has_no_sum() -> None:
    refusals = Refusals()
    refusals.take(refusal())
    assert refusals.over(T0 + INTERVAL_MS) == []


def test_a_flood_from_everywhere_is_bounded_and_every_refusal_is_counted() -> None:
    refusals = Refusals()
    floods = 20_000
    taken = 0
    for number in range(floods):
        event = refusal(T0, source_address=f"2001:db8::{number:x}", code=f"c{number % 7}")
        taken += refusals.take(event) is not None
    sums = refusals.over(T0 + INTERVAL_MS)
    assert taken <= (MOST_KINDS + 1) * FIRST
    assert len(sums) <= MOST_KINDS + 1
    assert taken + sum(each.count for each in sums) == floods


def test_a_flood_of_strangers_hides_no_caller() -> None:
    refusals = Refusals()
    for number in range(5_000):
        refusals.take(refusal(source_address=f"2001:db8::{number:x}"))
    evil = refusal(caller="evil", role="read", tenant="victim", status=403, code="forbidden")
    assert refusals.take(evil) == evil
    for _ in range(FIRST):
        refusals.take(evil)
    known = [each for each in refusals.over(T0 + INTERVAL_MS) if each.caller]
    assert [(each.caller, each.role, each.status, each.count) for each in known] == [
        ("evil", "read", 403, 1)
    ]


def test_a_clock_that_is_set_back_keeps_no_sum_for_long() -> None:
    refusals = Refusals()
    for _ in range(FIRST + 1):
        refusals.take(refusal(T0))
    assert len(refusals.over(T0 - 3_600_000)) == 1


def test_the_end_sums_up_what_is_there() -> None:
    refusals = Refusals()
    for _ in range(FIRST + 2):
        refusals.take(refusal(T0))
    assert [each.count for each in refusals.over(T0, ending=True)] == [2]
