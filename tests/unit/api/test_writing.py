"""What a verdict is in HTTP."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.api.problems import Problem
from belfry.api.workers.writing import Writes, answer, created, request_fields
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome, repeat_reason

FIRST = Verdict("demo", "a", Outcome.ACCEPTED, version=1)
REPEATED = Verdict("demo", "a", Outcome.DUPLICATE, version=1, code="ACCEPTED")


@pytest.mark.parametrize(
    ("verdict", "creates", "status"),
    [(FIRST, True, 201), (REPEATED, True, 201), (REPEATED, False, 200)],
)
def test_a_repeat_is_answered_like_the_first_unless_it_creates_nothing(
    verdict: Verdict, creates: bool, status: int
) -> None:
    found = answer(verdict, "/v1/tenants/demo/schedules/a", creates=creates)
    assert found.status_code == status
    assert ("location" in found.headers) == (status == 201)


@pytest.mark.parametrize("conditional", [True, False])
def test_another_request_under_a_used_id_is_a_conflict_whatever_else_was_expected(
    conditional: bool,
) -> None:
    reused = Verdict("demo", "a", Outcome.CONFLICT, code="request_id_reused", reason="It is taken.")
    path = "/v1/tenants/demo/schedules/a"
    assert answer(reused, path, conditional=conditional).status_code == 409
    other = Verdict("demo", "a", Outcome.CONFLICT, code="wrong_version")
    assert answer(other, path, conditional=conditional).status_code == (412 if conditional else 409)


@pytest.mark.parametrize(
    ("outcome", "code", "status"),
    [
        (Outcome.CONFLICT, "same_definition", 200),
        (Outcome.CONFLICT, "exists", 409),
        (Outcome.REJECTED, "too_many_pending", 429),
        (Outcome.REJECTED, "payload_too_large", 413),
        (Outcome.REJECTED, "bad_cron", 422),
        (Outcome.NOT_FOUND, "not_found", 404),
        (Outcome.ACCEPTED, "", 201),
    ],
)
def test_a_repeat_of_a_post_gets_the_status_of_the_first_answer(
    outcome: Outcome, code: str, status: int
) -> None:
    first = Verdict("demo", "a", outcome, version=1, code=code or None)
    reason = repeat_reason(outcome, code)
    again = Verdict("demo", "a", Outcome.DUPLICATE, version=1, code=str(outcome), reason=reason)
    path = "/v1/tenants/demo/schedules"
    assert answer(created(first), path).status_code == status
    assert answer(created(again), path).status_code == status


async def test_who_waits_for_a_verdict_while_the_worker_stops_is_told_how_to_ask_again() -> None:
    begun = asyncio.Event()

    async def ask(*_: Any) -> Verdict:
        begun.set()
        await asyncio.sleep(60)
        return FIRST

    holdings = SimpleNamespace(home_of=lambda *_: 0)
    ready = SimpleNamespace(holdings=holdings, request_client=SimpleNamespace(ask=ask))
    parts: Any = SimpleNamespace(ready=ready)
    reads: Any = None
    fields = request_fields("demo", "a", "UPSERT", {"request_id": "r1"})
    asked = asyncio.create_task(Writes(parts, reads).carry_out(fields, wait=True))
    await begun.wait()
    asked.cancel("the port closes")
    with pytest.raises(Problem, match="with request_id 'r1' is safe") as told:
        await asked
    assert told.value.status == 503
