"""A policy that changes while a partition fires: one or the other, never a mixture of both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

import pytest

from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.step_tenants import StepTenants
from tests.unit.engine.driver import FIRED, T0, Driver, Shot

RAW = TenantPolicy("demo", output_topic="raw", lifecycle="ALL")
WRAPPED = TenantPolicy("demo", output_topic="wrapped", delivery="ENVELOPE", cloudevents=True)
FORMS = {("raw", Delivery.PAYLOAD, False), ("wrapped", Delivery.ENVELOPE, True)}
READS = 300_000
STEPS = 300


def both_ways(tenants: Tenants, stop: Event) -> None:
    """What the policies' thread does when a policy changes again and again."""
    while not stop.is_set():
        for policy in (WRAPPED, RAW):
            tenants.follow(EffectivePolicy(policy), envelope_head=b"head!")


@contextmanager
def policies_changing(change: Callable[[Event], None]) -> Iterator[None]:
    """Another thread changes policies meanwhile, and gets its turn between any two instructions."""
    stop, interval = Event(), sys.getswitchinterval()
    thread = Thread(target=change, args=(stop,))
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


def guarded() -> Tenants:
    tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES, guard=Lock())
    tenants.follow(EffectivePolicy(RAW))
    return tenants


def test_no_reader_sees_the_topic_of_one_policy_with_the_form_of_another() -> None:
    tenants = guarded()
    step = StepTenants(tenants)
    seen = set()
    with policies_changing(lambda stop: both_ways(tenants, stop)):
        for _ in range(READS):
            step.renew()
            tenant = step.of_bytes(b"demo")
            seen.add((tenant.topic, tenant.delivery, tenant.enveloped))
    assert seen == FORMS


def forms(shots: list[Shot]) -> set[tuple[str, bool, bool]]:
    """Topic and form of what a step fired."""
    return {
        (shot.topic, (shot.value or b"").startswith(b"head!"), "ce_id" in dict(shot.headers))
        for shot in shots
    }


def test_all_events_of_a_step_follow_one_policy_however_often_it_changes() -> None:
    driver = Driver()
    driver.tenants._guard = Lock()
    driver.tenants.follow(EffectivePolicy(RAW))
    due = range(STEPS * 4)
    for number in due:
        driver.ask(schedule_id=f"{number}", at=T0 + 1 + number // 4, payload=b"p")
    driver.step(T0)
    seen = []
    with policies_changing(lambda stop: both_ways(driver.tenants, stop)):
        for number in range(STEPS):
            driver.ask(schedule_id=f"{due[-1]}", action="TRIGGER")
            seen.append(forms(driver.step(T0 + 1 + number).shots))
    assert {len(each) for each in seen} == {1}
    assert set.union(*seen) == {("raw", False, False), ("wrapped", True, True)}


@pytest.mark.parametrize("level", ["FAILURES", "ALL"])
def test_a_change_amid_a_step_counts_from_the_next_one_on(level: str) -> None:
    """It comes while the step meets another tenant, between two events and a TRIGGER of one."""
    driver = Driver()
    driver.apply(output_topic="raw", lifecycle=level)
    for number, tenant in enumerate(("demo", "fresh", "demo", "demo")):
        driver.ask(tenant=tenant, schedule_id=f"{number}", at=T0 + 5 + number // 3, payload=b"p")
    driver.step(T0)
    tenants = driver.tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES)
    tenants.follow(EffectivePolicy(RAW))

    def meet(name: str) -> None:
        assert name == "fresh"
        tenants.follow(EffectivePolicy(WRAPPED), envelope_head=b"head!")

    tenants.effective_of = meet
    driver.start(driver.rows)
    driver.ask(schedule_id="3", action="TRIGGER")
    shots = driver.step(T0 + 5).shots
    assert [shot.id for shot in shots] == ["0", "1", "2", "3"]
    assert {shot.topic for shot in shots} == {"raw", "belfry.fired.fresh"}
    assert driver.step(T0 + 6).shots[0].topic == "wrapped"


def test_two_partitions_that_meet_a_tenant_at_once_see_the_same() -> None:
    tenants = guarded()
    first, second = StepTenants(tenants), StepTenants(tenants)
    tenants.follow(EffectivePolicy(WRAPPED))
    assert first.of("new") is second.of_bytes(b"new") is tenants.of("new")
    assert first.of("demo").topic == "raw"
    second.renew()
    assert second.of("demo").topic == "wrapped"
    assert second.of("new") is first.of("new")


def test_a_policy_that_changes_while_its_tenant_is_met_is_not_lost() -> None:
    """The policies' thread asks whom it concerns when the new policy is already there."""
    tenants = Tenants(FIRED, Delivery.PAYLOAD, Level.FAILURES)
    concerned = []

    def meet(name: str) -> EffectivePolicy:
        old = EffectivePolicy(TenantPolicy(name, priority=1))
        tenants.effective_of = {name: EffectivePolicy(TenantPolicy(name, priority=2))}.get
        if tenants.concerns(name):
            concerned.append(tenants.follow(EffectivePolicy(TenantPolicy(name, priority=2))))
        return old

    tenants.effective_of = meet
    assert tenants.of("late").effective.policy.priority == 2
    assert concerned == [tenants.of("late")]
