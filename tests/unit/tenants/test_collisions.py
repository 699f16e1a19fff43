"""Names that collide in Kafka's metrics: what lasts decides whose a name is, never a request."""

from __future__ import annotations

from itertools import permutations

import pytest

from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy

FIRED = "belfry.fired."
DOTS, LINES, MIXED = "pay.eu.x", "pay_eu_x", "pay.eu_x"


def directory() -> Tenants:
    return Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES)


def rivals(tenants: Tenants, *names: str) -> list[str | None]:
    """Whom each collides with; they are met in this order."""
    for name in names:
        tenants.of(name)
    return [tenants.of(name).collides_with for name in (DOTS, LINES, MIXED)]


@pytest.mark.parametrize("met", list(permutations((DOTS, LINES, MIXED))))
@pytest.mark.parametrize("late", [False, True], ids=["known before", "known after"])
def test_whoever_is_met_first_the_same_tenant_has_the_name(
    met: tuple[str, ...], late: bool
) -> None:
    tenants = directory()
    if late:
        assert rivals(tenants, *met) == [None, None, None]
    tenants.note_policies([LINES, MIXED])
    assert rivals(tenants, *met) == [MIXED, MIXED, None]
    tenants.note_topics([FIRED + LINES])
    assert rivals(tenants, *met) == [LINES, None, LINES]
    tenants.note_topics([], [FIRED + LINES])
    tenants.note_policies([], [MIXED])
    assert rivals(tenants, *met) == [LINES, None, LINES]
    tenants.note_policies([], [LINES])
    assert rivals(tenants, *met) == [None, None, None]


def test_where_both_topics_are_there_nobody_collides() -> None:
    tenants = directory()
    tenants.note_topics([FIRED + DOTS, FIRED + LINES])
    assert rivals(tenants, DOTS, LINES) == [None, None, DOTS]


def test_a_tenant_whose_events_go_elsewhere_needs_no_name_of_its_own() -> None:
    tenants = directory()
    tenants.note_topics([FIRED + LINES])
    assert tenants.of(DOTS).collides_with == LINES
    tenants.follow(EffectivePolicy(TenantPolicy(DOTS, output_topic="payments")))
    assert tenants.of(DOTS).collides_with is None
    tenants.follow(EffectivePolicy(TenantPolicy(DOTS)))
    assert tenants.of(DOTS).collides_with == LINES
