"""What topics take is asked for by looks, and not by steps that meet a tenant."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.effects import Effects
from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.outputs.readiness import Outputs
from belfry.outputs.topic_queue import BATCH_OVERHEAD_BYTES
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from tests.unit.outputs.test_readiness import Made


class Altered(Made):
    """A cluster whose topics are altered: `takes` says what they take now."""

    takes = 5_000
    # So many questions are not answered.
    silent = 0

    def _described(self, topic: str) -> Future[Any]:
        answer: Future[Any] = Future()
        if self.silent:
            self.silent -= 1
            answer.set_exception(TimeoutError())
            return answer
        answer.set_result({"max.message.bytes": SimpleNamespace(value=str(self.takes))})
        return answer


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


@pytest.mark.parametrize(("takes", "silent"), [(900, 0), (90_000, 0), (90_000, 1)])
def test_a_topic_that_was_altered_before_its_tenant_was_met_is_asked_soon_after(
    monkeypatch: pytest.MonkeyPatch, takes: int, silent: int
) -> None:
    """Else requests that fit would be refused until a restart, and what does not fit accepted."""
    monkeypatch.setattr(librdkafka, "AdminClient", Altered)
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    found = Outputs(Settings(), tenants, None)
    monkeypatch.setattr(found._thread.stopping, "wait", lambda _seconds: False)
    admin: Any = found._admin
    admin.names |= dict.fromkeys(["belfry.fired.old", "belfry.fired.other"])
    found._view.look(0.0)
    admin.takes, admin.silent = takes, silent
    found.prepare(Effects(tenants={"old"}))
    assert admin.asked == [2]
    now_s = machine.monotonic() + 10.0
    for later_s in (0.0, 10.0):
        monkeypatch.setattr(machine, "monotonic", lambda at_s=now_s + later_s: at_s)
        found._look_now_and_then()
    assert tenants.of("old").max_record_bytes == takes - BATCH_OVERHEAD_BYTES
    assert admin.asked == [2, *[1] * (silent + 1)]
