"""What topics take is asked for by looks, and not by steps that meet a tenant."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.effects import Effects
from belfry.kafka import librdkafka
from belfry.outputs.readiness import Outputs
from belfry.outputs.topic_queue import BATCH_OVERHEAD_BYTES
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from tests.unit.outputs.test_readiness import Made


def test_what_a_topic_takes_is_not_asked_for_again_amid_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look has asked before; where a policy leads to a topic, or it refused, it is asked anew."""
    monkeypatch.setattr(librdkafka, "AdminClient", Made)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    admin: Any = found._admin
    admin.names |= dict.fromkeys(["belfry.fired.old", "elsewhere"])
    found._view.look(0.0)
    assert admin.asked == [1]
    found.prepare(Effects(tenants={"old"}))
    assert tenants.of("old").max_record_bytes == 5_000 - BATCH_OVERHEAD_BYTES
    assert admin.asked == [1]
    found.hold({"belfry.fired.old": "too large"})
    found._make_ready(["old"])
    assert not tenants.of("old").held
    assert admin.asked == [1, 1]
    found.apply(EffectivePolicy(TenantPolicy("old", delivery="PAYLOAD", spread=2)))
    assert admin.asked == [1, 1]
    found.apply(EffectivePolicy(TenantPolicy("old", output_topic="elsewhere")))
    found._view.look(0.0)
    asked = len(admin.asked)
    found.apply(EffectivePolicy(TenantPolicy("old")))
    assert len(admin.asked) == asked + 1
