"""A schema that a known asker needs is deferred: the batch goes on, and its lookup too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from belfry.engine.claims import stranger_of
from belfry.partitions.resolver import MOST_AT_ONCE, SHORT_S
from belfry.registry.answers import Missing
from belfry.store.layout.aside import Waits
from belfry.tenants.effective import EffectivePolicy, Signing
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claims import signature
from belfry.wire.record import SourceRecord
from tests.unit.partitions.test_resolver import OURS, Registry, Site, asking, resolving, soon


@contextmanager
def apart(registry: Registry, wait_s: float = 10.0, per_minute: int = 60) -> Iterator[Site]:
    """A resolver of a partition with state, where everybody signs."""
    with resolving(registry, wait_s=wait_s, per_minute=per_minute) as site:
        site.tenants.signing = Signing(everybody=True)
        policy = TenantPolicy("t", signing_secret_ref="env:SECRET")
        site.tenants.follow(EffectivePolicy(policy, secrets=(b"right",)))
        yield site


def of_t(schema_id: int) -> SourceRecord:
    """A request of tenant `t` that refers to a schema."""
    record = asking(schema_id)
    proof = signature(b"right", "t", record[2], record[3], None)
    return (*record[:4], [("belfry-signature", proof)])


def aside(*records: SourceRecord) -> list[Waits]:
    """Records of `t` that were set aside."""
    return [Waits(b"t", record, appended=True) for record in records]


def silent() -> Registry:
    """A registry that takes questions and never answers."""
    registry = Registry(OURS)
    registry.may.clear()
    return registry


def test_who_is_known_holds_others_up_for_a_moment_and_then_for_none() -> None:
    with apart(silent()) as site:
        assert SHORT_S <= site.ready(of_t(7)) < 1
        assert set(site.resolver.deferred.needs) == {(b"t", 7)}
        site.resolver.taken()
        assert site.ready(of_t(7)) < SHORT_S / 2
        assert site.ready(of_t(8)) < SHORT_S / 2
        assert set(site.resolver.deferred.needs) == {(b"t", 7), (b"t", 8)}


def test_many_are_divided_before_anybody_is_asked_who_asks() -> None:
    """Each costs a signature; others wait for as long as a step takes."""
    with apart(silent()) as site:
        records = [of_t(7)] * (MOST_AT_ONCE + 1)
        assert not site.resolver.ready(records)
        assert site.resolver.too_many
        assert not site.resolver.deferred.needs
        assert not site.resolver.ready(records[:MOST_AT_ONCE])
        assert not site.resolver.too_many


def test_a_shorter_wait_holds_others_up_for_less() -> None:
    with apart(silent(), wait_s=0.1) as site:
        assert site.ready(of_t(7)) < SHORT_S
        assert set(site.resolver.deferred.needs) == {(b"t", 7)}


def test_what_is_deferred_is_settled_by_its_answer() -> None:
    registry = silent()
    with apart(registry) as site:
        site.ready(of_t(7))
        site.resolver.taken()
        registry.may.set()

        def settled() -> bool:
            site.resolver.look_after(aside(of_t(7)))
            return not site.resolver.deferred.needs

        soon(settled)
        assert not site.code(of_t(7))
    assert registry.asked == [7]


def test_what_is_deferred_waits_as_long_as_a_batch_did_and_is_refused_then() -> None:
    """The refusal holds until nothing is set aside any more, whatever batches come meanwhile."""
    with apart(silent(), wait_s=0.4) as site:
        began = time.monotonic()
        site.ready(of_t(7))
        site.resolver.taken()

        def over() -> bool:
            site.resolver.look_after(aside(of_t(7)))
            return not site.resolver.deferred.needs

        soon(over)
        assert 0.35 < time.monotonic() - began < 2
        site.resolver.taken()
        assert site.code(of_t(7)) == "schema_unavailable"
        states = [site.resolver.deferred.any]
        site.resolver.look_after([])
        states.append(site.resolver.deferred.any)
        assert states == [True, False]
        assert site.reader.unknown_schema(of_t(7)) == 7


def test_a_new_owner_asks_for_what_the_former_one_has_set_aside() -> None:
    registry = Registry(OURS)
    with apart(registry) as site:

        def settled() -> bool:
            site.resolver.look_after(aside(of_t(7)))
            return not site.code(of_t(7))

        soon(settled)
    assert registry.asked == [7]


def test_a_flood_is_deferred_within_its_budget_of_lookups() -> None:
    registry = Registry(Missing("not there"), takes_s=0.2)
    with apart(registry, per_minute=4) as site:
        flood = [of_t(1_000 + number) for number in range(MOST_AT_ONCE)]
        assert site.ready(*flood) < 1
        site.resolver.taken()

        def settled() -> bool:
            site.resolver.look_after(aside(*flood))
            return not site.resolver.deferred.needs

        soon(settled)
        codes = [site.code(each) for each in flood]
        assert codes.count("unknown_schema_id") == len(registry.asked) == 4
        assert codes.count("schema_unavailable") == MOST_AT_ONCE - 4


def test_who_is_not_known_holds_others_up_for_a_moment_too() -> None:
    with apart(silent(), wait_s=0.5) as site:
        site.tenants.signing = Signing()
        unknown = asking(7, key=b"shown")
        assert site.ready(unknown) < 0.4
        site.resolver.taken()
        assert set(site.resolver.deferred.needs) == {(stranger_of(unknown), 7)}
        assert 0.2 < site.settled(unknown) < 3
        assert site.code(unknown) == "schema_unavailable"
