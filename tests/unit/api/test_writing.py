"""What a verdict is in HTTP."""

from __future__ import annotations

import pytest

from belfry.api.writing import answer
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome

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
