"""Tenants: one object per name, and which lifecycle records each level writes."""

from __future__ import annotations

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.tenants.canary import CANARY
from belfry.tenants.deliveries import RETRIES
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import WRITTEN, Delivery, EffectivePolicy, Level, Signing
from belfry.tenants.policy import TenantPolicy


def tenants(level: Level = Level.FAILURES) -> Tenants:
    return Tenants("belfry.fired.", Delivery.PAYLOAD, level)


def test_a_name_and_its_bytes_lead_to_the_same_tenant() -> None:
    directory = tenants()
    assert directory.of("a.b") is directory.of_bytes(b"a.b") is directory.of("a.b")
    assert directory.of_bytes(b"c") is directory.of("c")
    assert directory.of("a.b").topic == "belfry.fired.a.b"


@pytest.mark.parametrize("level", Level)
def test_a_tenant_writes_what_its_level_says(level: Level) -> None:
    assert tenants(level).of("demo").written == WRITTEN[level]


def test_each_level_writes_more_than_the_one_below_it() -> None:
    assert WRITTEN[Level.FAILURES] < WRITTEN[Level.OUTCOMES] < WRITTEN[Level.ALL]
    assert WRITTEN[Level.ALL] - WRITTEN[Level.OUTCOMES] == {Outcome.FIRED, Outcome.DELIVERED}
    assert Outcome.REJECTED in WRITTEN[Level.FAILURES]


@pytest.mark.parametrize("everybody", [False, True])
def test_asking_for_a_secret_makes_no_tenant(everybody: bool) -> None:
    """HTTP asks from a thread of its own, for whatever name it is given."""
    directory = tenants()
    directory.signing = Signing(
        everybody, (b"the workers' own", b"the former one"), (b"for deliveries",), (b"for probes",)
    )
    own = EffectivePolicy(TenantPolicy("signs", signing_secret_ref="env:X"), secrets=(b"its own",))
    directory.effective_of = {"signs": own}.get
    secrets = [directory.secret_of(name) for name in ("signs", "plain")]
    assert secrets == [b"its own", b"the workers' own" if everybody else b""]
    assert directory.secret_of(RETRIES) == directory.secret_of(CANARY) == b""
    assert directory.known(b"signs") is directory.known(b"plain") is None
    for name in ("signs", "plain"):
        directory.of(name)
    assert [directory.secret_of(name) for name in ("signs", "plain")] == secrets
