"""A registry that refuses a tenant's envelopes, or is away, holds that tenant and nobody else."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.effects import Effects
from belfry.kafka import librdkafka
from belfry.kafka.outcome import Aborted
from belfry.outputs.envelopes import SILENT_S, Envelopes
from belfry.outputs.readiness import Outputs
from belfry.registry.answers import (
    RegistryError,
    RegistrySilentError,
    RegistryUnreachableError,
    SchemaRefusedError,
)
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Tenant
from belfry.tenants.policy import TenantPolicy
from belfry.wire import framing

REFUSED = SchemaRefusedError("The registry refuses FiredEvent: incompatible")
DENIED = RegistryUnreachableError("The registry did not carry out FiredEvent: 403")
SILENT = RegistrySilentError("The registry does not answer")


class FakeRegistry:
    """Gives the id 7, or an error for some topics' subjects, and counts who asks."""

    def __init__(self) -> None:
        self.errors: dict[str, RegistryError] = {}
        self.asked: list[str] = []

    def id_for_writing(self, subject: str, _name: str, *, may_register: bool) -> int:
        self.asked.append(subject)
        if subject in self.errors:
            raise self.errors[subject]
        return 7


class Cluster:
    """An admin client of a cluster in which all is well."""

    def __init__(self, _properties: dict[str, Any]) -> None:
        self.names = ["belfry.fired.shop", "belfry.fired.calm", "elsewhere"]

    def list_topics(self, timeout: float) -> Any:
        topic = SimpleNamespace(error=None, partitions={0: SimpleNamespace(leader=1)})
        return SimpleNamespace(topics=dict.fromkeys(self.names, topic), brokers={1: None})

    def create_topics(self, _new: list[Any], **_: Any) -> dict[str, Future[Any]]:
        return {}

    def describe_configs(self, resources: list[Any]) -> dict[Any, Future[Any]]:
        config = {"max.message.bytes": SimpleNamespace(value="1048588")}
        return {resource: answered(config) for resource in resources}

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        allowed = SimpleNamespace(authorized_operations=None)
        return {name: answered(allowed) for name in self.names}


def answered(answer: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(answer)
    return future


class Site:
    """Output topics of two tenants: `shop` takes envelopes, `calm` payloads."""

    def __init__(self, registry: FakeRegistry) -> None:
        self.tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        given: Any = registry
        self.outputs = Outputs(Settings(), self.tenants, given)
        self.outputs._view.look(0.0)
        self.tenants.of("calm")
        self.tenants.follow(EffectivePolicy(TenantPolicy("shop", delivery="ENVELOPE")))

    @property
    def shop(self) -> Tenant:
        """As it is treated now."""
        return self.tenants.of("shop")

    @property
    def calm(self) -> Tenant:
        """As it is treated now."""
        return self.tenants.of("calm")

    def fires(self, *names: str) -> None:
        """A step fires an event of each; Aborted where it may not be committed."""
        effects = Effects(tenants=set(names))
        for tenant in map(self.tenants.of, names):
            effects.fired.append((tenant.topic, b"k", None, b"v", []))
            if tenant.delivery is Delivery.ENVELOPE and not tenant.envelope_head:
                effects.unframed.add(tenant.name)
        self.outputs.prepare(effects)

    def pause_ends(self) -> None:
        """What the thread does when it is time to try again."""
        self.outputs._state._retry = {
            name: (0.0, pause) for name, (_, pause) in self.pauses.items()
        }
        self.outputs._make_ready(list(self.pauses))

    @property
    def pauses(self) -> dict[str, tuple[float, float]]:
        return self.outputs._state._retry


@pytest.fixture
def registry() -> FakeRegistry:
    return FakeRegistry()


@pytest.fixture
def site(registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(librdkafka, "AdminClient", Cluster)
    return Site(registry)


@pytest.mark.parametrize("error", [REFUSED, DENIED, SILENT])
def test_the_tenant_waits_others_fire_and_it_is_released_later(
    site: Site, registry: FakeRegistry, error: RegistryError
) -> None:
    registry.errors = {"belfry.fired.shop-value": error}
    with pytest.raises(Aborted):
        site.fires("shop", "calm")
    assert site.shop.held == str(error)
    assert not site.calm.held
    site.fires("calm")
    site.pause_ends()
    site.pause_ends()
    assert site.shop.held
    assert site.pauses["shop"][1] == 4.0
    registry.errors = {}
    site.outputs._envelopes._silence = (0.0, "")
    site.pause_ends()
    assert not site.shop.held
    assert site.shop.envelope_head == framing.prefix(7)
    assert not site.pauses
    site.fires("shop", "calm")


def test_who_is_held_does_not_ask_the_registry_with_every_request(
    site: Site, registry: FakeRegistry
) -> None:
    registry.errors = {"belfry.fired.shop-value": REFUSED}
    with pytest.raises(Aborted):
        site.fires("shop")
    pause = site.pauses["shop"]
    for _ in range(3):
        site.outputs.prepare(Effects(tenants={"shop"}))
    assert registry.asked == ["belfry.fired.shop-value"]
    assert site.pauses["shop"] == pause


@pytest.mark.parametrize("error", [REFUSED, SILENT])
def test_a_policy_is_followed_though_the_registry_will_not_have_its_envelopes(
    site: Site, registry: FakeRegistry, error: RegistryError
) -> None:
    site.pause_ends()
    site.fires("calm")
    registry.errors = {"belfry.fired.calm-value": error}
    site.outputs.apply(EffectivePolicy(TenantPolicy("calm", delivery="ENVELOPE", paused=True)))
    assert site.calm.paused
    assert site.calm.held == str(error)
    assert not site.calm.envelope_head


def test_what_was_settled_for_one_topic_does_not_count_on_another(
    site: Site, registry: FakeRegistry
) -> None:
    with pytest.raises(Aborted):
        site.fires("shop")
    assert site.shop.envelope_head
    registry.errors = {"elsewhere-value": REFUSED}
    moved = TenantPolicy("shop", delivery="ENVELOPE", output_topic="elsewhere")
    site.outputs.apply(EffectivePolicy(moved))
    site.outputs._view.look(0.0)
    site.pause_ends()
    assert site.shop.held == str(REFUSED)
    assert not site.shop.envelope_head


def test_a_policy_that_changes_something_else_asks_no_registry(
    site: Site, registry: FakeRegistry
) -> None:
    with pytest.raises(Aborted):
        site.fires("shop")
    registry.errors = {"belfry.fired.shop-value": SILENT}
    site.outputs.apply(EffectivePolicy(TenantPolicy("shop", delivery="ENVELOPE", paused=True)))
    assert site.shop.paused
    assert not site.shop.held


def test_a_registry_that_is_silent_is_left_alone_for_a_while(registry: FakeRegistry) -> None:
    now = [1_000.0]
    given: Any = registry
    envelopes = Envelopes(Settings(), given, lambda: now[0])
    tenants = Tenants("belfry.fired.", Delivery.ENVELOPE, Level.FAILURES)
    names = [f"t{number}" for number in range(50)]
    registry.errors = {f"belfry.fired.{name}-value": SILENT for name in names}
    for tenant in map(tenants.of, names):
        assert envelopes.head(tenant.topic) == (b"", str(SILENT))
    assert len(registry.asked) == 1
    registry.errors.clear()
    now[0] += SILENT_S
    assert not envelopes.head("belfry.fired.t0")[1]
