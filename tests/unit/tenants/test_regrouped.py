"""Tenants whose key group moves: who waits, who does not, and what of it a step finds again."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Tenant
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.regrouped import WHY, Regrouped, as_if_here
from belfry.tenants.step_tenants import StepTenants

# Groups of tenants by the first letter of their names.
MOVES, ARRIVES, AWAY, HERE = range(4)
GROUPS = {"m": MOVES, "r": ARRIVES, "a": AWAY, "h": HERE}
SOURCE = b"belfry.schedules"


@pytest.fixture
def tenants() -> Tenants:
    return Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)


def moving(tenants: Tenants, asked: list[str] | None = None) -> StepTenants:
    """A step amid a move of groups; `asked` hears whose group is asked for."""

    def group_of(name: str) -> int:
        if asked is not None:
            asked.append(name)
        return GROUPS[name[0]]

    step = StepTenants(tenants)
    quiet = {MOVES: {b"m-along"}, ARRIVES: set[bytes]()}
    step.regrouped = Regrouped(group_of, quiet, {ARRIVES}, {AWAY})
    step.renew()
    return step


def follow(tenants: Tenants, name: str, **fields: Any) -> Tenant:
    return tenants.follow(EffectivePolicy(TenantPolicy(name, source_header=True, **fields)))


@pytest.mark.parametrize(
    ("name", "fields", "held", "source"),
    [
        ("m", {}, WHY, b""),
        ("m-along", {}, "", SOURCE),
        ("r", {}, WHY, b""),
        # What is here of a spread tenant has been here before.
        ("r", {"spread": 2}, "", SOURCE),
        ("r", {"former_spreads": (4,)}, "", SOURCE),
        ("m", {"spread": 2}, WHY, b""),
        # Of what lies away from home the request has another place.
        ("a", {}, "", b""),
        ("h", {}, "", SOURCE),
    ],
)
def test_who_waits_and_who_says_where_its_request_lies(
    tenants: Tenants, name: str, fields: dict[str, Any], held: str, source: bytes
) -> None:
    follow(tenants, name, **fields)
    step = moving(tenants)
    found = step.of(name)
    assert (found.held, found.source_topic) == (held, source)
    assert step.of_bytes(name.encode()) == step.known(name.encode()) == found
    assert step.is_quiet(name.encode()) is (name in ("m", "r"))
    assert as_if_here(found).held == ""


def test_what_the_shell_holds_stays_held_by_its_own_reason(tenants: Tenants) -> None:
    follow(tenants, "m")
    tenants.hold("m", "its topic is missing")
    found = moving(tenants).of("m")
    assert found.held == as_if_here(found).held == "its topic is missing"


def test_a_step_works_each_tenant_out_once_and_meets_strangers_likewise(tenants: Tenants) -> None:
    follow(tenants, "a")
    asked: list[str] = []
    step = moving(tenants, asked)
    first = step.known(b"a")
    asked.clear()
    assert step.known(b"a") is first is not None
    assert asked == []
    assert step.known(b"m-new") is None
    assert step.of("m-new").held == WHY


def test_without_a_move_nobody_is_quiet(tenants: Tenants) -> None:
    step = StepTenants(tenants)
    assert not step.is_quiet(b"m")
    assert step.of("m").held == ""
