"""What `belfry doctor` says of tenants that wait: each cause with what to do about it."""

from __future__ import annotations

import pytest

from belfry.cli.check import Status
from belfry.cli.doctor_cluster import BROKEN, TO_DO, tenants_waiting
from belfry.tenants.waits import CAUSES

# It passes by itself, at its own pace.
PASSES = "catch_up"


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_has_its_line_and_what_to_do(cause: str) -> None:
    wait = {
        "tenant": "shop", "cause": cause, "reason": "so it is", "since": "2030-01-01T09:00:00Z",
        "waiting": 2, "oldest_due_at": "2030-01-01T08:00:00Z",
    }  # fmt: skip
    (found,) = tenants_waiting({"figures": [{"wait": wait}]})
    assert found.status is (Status.PROBLEM if cause in BROKEN else Status.RISK)
    assert found.detail.startswith(f"shop waits ({cause}) since 2030-01-01T09:00:00Z: so it is.")
    assert bool(found.to_do) is (cause != PASSES)


def test_no_cause_is_named_that_there_is_not() -> None:
    assert TO_DO.keys() == set(CAUSES) - {PASSES}
    assert set(CAUSES) > BROKEN
