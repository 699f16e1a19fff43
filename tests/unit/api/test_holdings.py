"""What a worker says of tenants that it has met, and of those that it has not."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.api.workers.holdings import Holdings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy


@pytest.mark.parametrize("by_default", list(Level))
def test_the_level_of_a_tenant_is_known_before_the_tenant_is_met(by_default: Level) -> None:
    tenants = Tenants("fired.", Delivery.PAYLOAD, by_default)
    effective = EffectivePolicy(TenantPolicy("shop", lifecycle="ALL"))
    tenants.effective_of = {"shop": effective}.get
    nobody: Any = None
    holdings = Holdings(nobody, tenants, 4)
    assert holdings.level("shop") is Level.ALL
    assert holdings.level("other") is by_default
    assert tenants.known(b"shop") is None
    tenants.follow(effective)
    assert holdings.level("shop") is Level.ALL
    tenants.follow(EffectivePolicy(TenantPolicy("shop", lifecycle="OUTCOMES")))
    assert holdings.level("shop") is Level.OUTCOMES
