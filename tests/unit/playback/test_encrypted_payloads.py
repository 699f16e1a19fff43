"""A log with encrypted payloads comes out again to the byte where the keys are there."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.client.key_ring import KeyRing
from belfry.engine.job_counts import Budget
from belfry.playback.treatment import PolicyAt, Treatment
from belfry.schedules.bulk import BulkSpec
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.test_player import busy
from tests.unit.playback.trail import Leaving, play

RIGHT = KeyRing("demo", [b"a secret of thirty-two bytes or more"])
WRONG = KeyRing("demo", [b"another secret of thirty-two bytes"])


def test_the_same_keys_give_the_same_bytes_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy: Any = {"payload_key_ref": "env:BELFRY_SECRET_DEMO"}
    monkeypatch.setattr(Leaving, "keys_of", staticmethod(lambda _: RIGHT))
    trail = busy(**policy)
    assert any(b"x" * 30 in (fired[3] or b"") for _, fired in trail.events)
    assert not any(b"x" * 30 in (each.row or b"") for each in trail.log)
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events > 60
    monkeypatch.setattr(Leaving, "keys_of", staticmethod(lambda _: WRONG))
    differs = play(trail).differs
    assert differs is not None
    assert differs.what == "row"


def test_a_policy_that_cannot_be_carried_out_keeps_nothing_readable_there_either() -> None:
    targets = (HttpTarget("https://example.org"),)
    policy = TenantPolicy("demo", payload_key_ref="file:keys", http_targets=targets)
    treatment = Treatment([PolicyAt(1, "demo", policy)], "belfry.", keys_of=lambda _: RIGHT)
    treatment.reach(1)
    tenant = treatment.tenants.of("demo")
    assert (tenant.lacks_key, tenant.simple, bool(tenant.stopped)) == (True, False, True)


def test_payloads_under_a_new_key_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that encrypts anew leaves the same rows, with the keys of each policy."""
    newer, older = b"a newer secret of thirty-two bytes", b"a secret of thirty-two bytes or more"
    both = KeyRing("demo", [newer, older])
    rings = {"env:BELFRY_SECRET_OLD": RIGHT, "env:BELFRY_SECRET_BOTH": both}
    keys_of = staticmethod(lambda policy: rings.get(policy.payload_key_ref))
    monkeypatch.setattr(Leaving, "keys_of", keys_of)
    trail = Leaving()
    trail.set(T0, tenant="demo", payload_key_ref="env:BELFRY_SECRET_OLD")
    for number in range(40):
        trail.ask(T0 + 1, schedule_id=f"s{number:02}", at=T0 + HOUR, payload=b"secret")
    trail.step(T0 + 5)
    trail.set(T0 + 10, tenant="demo", payload_key_ref="env:BELFRY_SECRET_BOTH")
    spec = BulkSpec(action="REKEY", per_second=20, key=both.newest).text()
    trail.ask(T0 + 11, schedule_id="job", action="BULK", bulk=spec)
    trail.step(T0 + 12)
    now_ms = T0 + 20
    while trail.engine.jobs.under_way:
        trail.engine.advance_jobs(now_ms, Budget(100, 7))
        trail.end(now_ms)
        now_ms += 170
    trail.run(T0 + HOUR)
    assert len(trail.events) == 40
    assert play(trail).differs is None
