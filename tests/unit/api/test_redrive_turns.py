"""Tenants that redrive by one worker take turns, and one that is alone waits for nobody."""

from __future__ import annotations

import threading
from typing import Any

from belfry.api.problems import Problem
from belfry.api.routes.redrive_turns import WAITS_MS, RedriveTurns
from tests.unit.api.test_redrives import FROM, Caller

NOW = 1_796_169_600_000
RANGE = {"what": "rejected", "range_from": FROM}


def asks(turns: RedriveTurns, tenant: str, now_ms: int = NOW) -> str:
    """What a tenant hears that asks for a turn; nothing where it has one."""
    try:
        turns.see(tenant, now_ms)
    except Problem as problem:
        return str(problem.more["code"])
    turns.had(tenant)
    return ""


def test_who_is_alone_has_turn_after_turn() -> None:
    turns = RedriveTurns()
    assert [asks(turns, "shop") for _ in range(3)] == ["", "", ""]


def test_who_was_refused_comes_before_who_had_the_last_turn() -> None:
    turns = RedriveTurns()
    assert asks(turns, "shop") == ""
    turns.refused("mail", NOW)
    assert asks(turns, "shop") == "busy"
    assert [asks(turns, each) for each in ("mail", "mail", "shop", "mail")] == ["", "busy", "", ""]


def test_who_asks_no_more_waits_no_more() -> None:
    turns = RedriveTurns()
    asks(turns, "shop")
    turns.refused("mail", NOW)
    assert asks(turns, "shop", NOW + WAITS_MS) == "busy"
    assert asks(turns, "shop", NOW + WAITS_MS + 1) == ""


def test_a_tenant_that_was_busy_is_let_in_before_the_next_slice_of_the_other() -> None:
    caller = Caller("schedule", "*")
    begun, go_on = threading.Event(), threading.Event()
    redrive = caller.topics.redrive

    def slow(work: Any, policies: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return redrive(work, policies)

    def post(tenant: str) -> tuple[int, Any]:
        answer = caller.post(RANGE, f"/v1/tenants/{tenant}/redrives")
        return answer.status_code, answer.json().get("code")

    caller.topics.redrive = slow  # type: ignore[method-assign]
    first: list[tuple[int, Any]] = []
    thread = threading.Thread(target=lambda: first.append(post("mine")))
    thread.start()
    assert begun.wait(30)
    assert post("other") == (503, "busy")
    go_on.set()
    thread.join(30)
    assert first == [(200, None)]
    answer = caller.post(RANGE, "/v1/tenants/mine/redrives")
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert "another tenant waits" in answer.json()["detail"]
    assert post("other") == (200, None)
    assert post("mine") == (200, None)
