"""Policies are applied to whom they are about, whatever becomes of somebody else's."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.policies.follower import Policies
from belfry.policies.policy_topic import PolicyBatch
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire import framing
from belfry.wire.policies import encode_policy
from belfry.wire.record import SourceRecord

HEAD = framing.single_object("TenantPolicy")


class FakeOutputs:
    """Applies effective, but fails for some tenants."""

    def __init__(self, tenants: Tenants) -> None:
        self.tenants = tenants
        self.failing = {"bad"}

    def apply(self, effective: EffectivePolicy) -> None:
        if effective.policy.tenant in self.failing:
            raise ConnectionError("the cluster did not answer")
        self.tenants.follow(effective)


class Site:
    """Two tenants that are known here, whose kill switches are thrown in one batch."""

    def __init__(self) -> None:
        self.tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        self.outputs = FakeOutputs(self.tenants)
        given: tuple[Any, ...] = (Settings(), self.tenants, self.outputs, None)
        self.policies = Policies(*given)
        self.policies._topic.positions = {0: 0}
        for name in ("bad", "good"):
            self.tenants.of(name)
        self.send(TenantPolicy("bad", paused=True), TenantPolicy("good", paused=True))

    def send(self, *given: TenantPolicy) -> None:
        """Put policies into the topic, to be read in one round."""
        topic: Any = self.policies._topic
        start = topic.positions[0]
        records: list[SourceRecord] = [
            (start + number, 0, each.tenant.encode(), HEAD + encode_policy(each), None)
            for number, each in enumerate(given)
        ]
        rounds = [PolicyBatch(0, records, start + len(records))]
        topic.read = lambda: rounds.pop(0) if rounds else None

    @property
    def paused(self) -> list[str]:
        """Who is paused."""
        return [name for name in ("bad", "good") if self.tenants.of(name).paused]


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_tenant_that_cannot_be_treated_holds_up_nobody(site: Site) -> None:
    site.policies._read()
    assert site.paused == ["good"]
    assert site.policies._topic.positions == {0: 2}
    assert site.policies._topic.moved.is_set()


def test_it_is_tried_again_with_the_next_round_until_it_is_treated(site: Site) -> None:
    site.policies._read()
    site.policies._read()
    assert site.paused == ["good"]
    site.outputs.failing = set()
    site.policies._read()
    assert site.paused == ["bad", "good"]
    assert not site.policies._unapplied


def test_it_is_tried_again_when_somebody_elses_policy_comes(site: Site) -> None:
    site.policies._read()
    site.outputs.failing = set()
    site.send(TenantPolicy("good"))
    site.policies._read()
    assert site.paused == ["bad"]
    assert site.policies._topic.positions == {0: 3}


@pytest.mark.timeout(5)
@pytest.mark.parametrize("reference", ["file:/dev/zero", "file:/proc/self/environ", "env:PATH"])
def test_a_reference_to_no_secret_has_requests_refused_and_nothing_else(
    site: Site, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    site.send(TenantPolicy("good", signing_secret_ref=reference))
    site.policies._read()
    good = site.tenants.of("good")
    assert (good.signs, good.accepted, good.stopped) == (True, (), "")
    assert site.policies.stored.policy("good") == TenantPolicy("good", signing_secret_ref=reference)


@pytest.mark.parametrize(
    "topic", ["belfry.changelog", "belfry.deliveries", "belfry.fired.bad", "__consumer_offsets"]
)
def test_a_policy_that_names_a_reserved_topic_has_its_tenants_events_wait(
    site: Site, topic: str
) -> None:
    """Whoever wrote it, and whatever checked it before."""
    site.send(TenantPolicy("good", output_topic=topic))
    site.policies._read()
    good = site.tenants.of("good")
    assert good.topic == "belfry.fired.good"
    assert f"output_topic {topic!r} is reserved" in good.stopped
    site.send(TenantPolicy("good", output_topic="belfry.reminders"))
    site.policies._read()
    good = site.tenants.of("good")
    assert (good.topic, good.stopped) == ("belfry.reminders", "")
