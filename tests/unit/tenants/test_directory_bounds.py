"""Names that anybody can make up are not kept for ever, and do not each get a topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from belfry.tenants import directory
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.step_tenants import StepTenants

MET = 100


@pytest.fixture
def tenants(monkeypatch: pytest.MonkeyPatch) -> Tenants:
    monkeypatch.setattr(directory, "MET", MET)
    return Tenants("fired.", Delivery.PAYLOAD, Level.FAILURES)


def known(tenants: Tenants) -> int:
    """How many names any part of the directory remembers."""
    of_metrics = sum(map(len, tenants._snapshots._alike.values()))
    assert len(tenants.snapshot.by_name) == len(tenants.snapshot.by_bytes) == of_metrics
    return of_metrics


def test_names_that_have_nothing_are_forgotten(tenants: Tenants) -> None:
    for n in range(50 * MET):
        tenants.of(f"made-up.{n}")
        assert len(tenants.snapshot.by_name) <= 2 * MET + 1
    known(tenants)


def test_the_older_half_is_forgotten_each_time_that_so_many_more_were_met(tenants: Tenants) -> None:
    """Half of 101 are forgotten, and half of 152 when 101 more were met."""
    counts = []
    for n in range(2 * MET + 2):
        tenants.of(f"made-up.{n}")
        counts.append(len(tenants.snapshot.by_name))
    assert counts == [*range(1, 101), *range(51, 152), 76]
    assert list(tenants.snapshot.by_name) == [f"made-up.{n}" for n in range(126, 202)]


def test_who_has_something_is_kept_as_it_is(tenants: Tenants) -> None:
    tenants.follow(EffectivePolicy(TenantPolicy("policy", priority=7)))
    tenants.note_policies(["policy", "reserved"])
    tenants.note_topics(["fired.topic"])
    tenants.note([(tenants.of("topic"), {"max_record_bytes": 5_000})])
    tenants.hold("held", "no topic")
    kept = [tenants.of(name) for name in ("policy", "reserved", "topic", "held")]
    for n in range(20 * MET):
        tenants.of(f"made-up.{n}")
    assert [tenants.snapshot.by_name[tenant.name] for tenant in kept] == kept


def test_who_is_met_again_is_what_it_was_and_collides_as_before(tenants: Tenants) -> None:
    first = tenants.of("pay_eu")
    for n in range(20 * MET):
        tenants.of(f"made-up.{n}")
    assert "pay_eu" not in tenants.snapshot.by_name
    assert tenants.of("pay_eu") == first
    tenants.note_topics(["fired.pay.eu"])
    assert tenants.of("pay_eu").collides_with == "pay.eu"
    for n in range(20 * MET):
        tenants.of(f"made-up.{n}")
    assert tenants.of("pay_eu").collides_with == "pay.eu"
    tenants.note_topics([], ["fired.pay.eu"])
    assert tenants.of("pay_eu").collides_with is None


def test_who_is_kept_is_looked_at_when_one_of_its_name_has_been_forgotten(tenants: Tenants) -> None:
    """To Kafka's metrics the topics of both are one name."""
    tenants.of("pay.eu")
    tenants.hold("pay_eu", "no topic")
    for n in range(20 * MET):
        tenants.of(f"made-up.{n}")
    assert "pay.eu" not in tenants.snapshot.by_name
    tenants.note_topics(["fired.pay.eu"])
    assert tenants.of("pay_eu").collides_with == "pay.eu"
    # Another one of that name can be met afterwards.
    assert tenants.of("pay.eu").collides_with is None


def test_a_step_under_way_keeps_whom_it_has_met(tenants: Tenants) -> None:
    step = StepTenants(tenants)
    first = step.of("made-up")
    for n in range(20 * MET):
        tenants.of(f"other.{n}")
    assert step.of("made-up") is first
    step.renew()
    assert step.known(b"made-up") is None


def test_what_is_found_out_about_a_forgotten_one_is_noted(tenants: Tenants) -> None:
    seen = tenants.of("made-up")
    for n in range(20 * MET):
        tenants.of(f"other.{n}")
    tenants.note([(seen, {"held": "no topic"})])
    assert tenants.of("made-up") == replace(seen, held="no topic")
    known(tenants)


def test_what_is_found_out_twice_at_once_is_all_noted(tenants: Tenants) -> None:
    tenant = tenants.of("shop")
    tenants.note([(tenant, {"held": "no topic"}), (tenant, {"max_record_bytes": 5_000})])
    assert tenants.of("shop") == replace(tenant, held="no topic", max_record_bytes=5_000)


def test_what_is_found_out_about_a_topic_is_of_no_other_one(tenants: Tenants) -> None:
    seen = tenants.of("shop")
    moved = tenants.follow(EffectivePolicy(TenantPolicy("shop", output_topic="payments")))
    tenants.note([(seen, {"held": "no topic"})])
    assert tenants.of("shop") == moved


def test_who_was_removed_and_comes_back_is_none_of_the_removed(tenants: Tenants) -> None:
    for removed in (False, True, False):
        tenants.follow(EffectivePolicy(TenantPolicy("shop", removed=removed)))
        assert tenants.snapshot.removed == ({b"shop"} if removed else set())
    # One that is met as removed is known as such at once.
    tenants.effective_of = lambda name: EffectivePolicy(TenantPolicy(name, removed=True))
    tenants.of("gone")
    assert tenants.snapshot.removed == {b"gone"}


def test_who_had_another_topic_once_may_be_forgotten(tenants: Tenants) -> None:
    tenants.follow(EffectivePolicy(TenantPolicy("moved", output_topic="payments")))
    tenants.follow(tenants.defaults("moved"))
    for n in range(20 * MET):
        tenants.of(f"made-up.{n}")
    assert "moved" not in tenants.snapshot.by_name
    tenants.note_topics(["payments"])
    assert tenants.of("moved").topic == "fired.moved"


def test_unknown_tenants_have_so_many_topics(tenants: Tenants) -> None:
    tenants.topics.most_unknown = 2
    tenants.note_policies(["mine"])
    tenants.note_topics(["fired.a", "fired.mine"])
    assert not tenants.of("b").crowded_out
    tenants.note_topics(["fired.c"])
    assert tenants.of("d").crowded_out
    assert not tenants.of("a").crowded_out
    assert not tenants.of("mine").crowded_out
    assert not tenants.of("d").simple
    assert tenants.topics.unknown == 2


def test_a_topic_is_an_unknown_ones_again_when_its_policy_has_gone() -> None:
    tenants = Tenants("fired.", Delivery.PAYLOAD, Level.FAILURES, most_unknown=1)
    tenants.note_topics(["fired.a"])
    counts = []
    for come, gone in (([], []), (["a"], []), ([], ["a"])):
        tenants.note_policies(come, gone)
        counts.append(tenants.topics.unknown)
    assert counts == [1, 0, 1]
    assert tenants.of("b").crowded_out


def test_a_look_at_other_topics_makes_no_room(tenants: Tenants) -> None:
    tenants.topics.most_unknown = 1
    tenants.note_topics(["fired.a"])
    assert tenants.of("d").crowded_out
    tenants.note_topics(["fired.b"])
    assert tenants.of("d").crowded_out


def test_who_gets_room_and_a_rival_at_once_has_both(tenants: Tenants) -> None:
    tenants.topics.most_unknown = 2
    tenants.note_topics(["fired.a", "fired.b"])
    assert tenants.of("x.y").crowded_out
    tenants.note_topics(["fired.x_y"], ["fired.a", "fired.b"])
    found = tenants.of("x.y")
    assert (found.crowded_out, found.collides_with) == (False, "x_y")


def test_who_was_crowded_out_and_is_forgotten_does_not_wait_for_room(tenants: Tenants) -> None:
    tenants.topics.most_unknown = 1
    tenants.note_topics(["fired.a"])
    for n in range(20 * MET):
        assert tenants.of(f"made-up.{n}").crowded_out
    tenants.note_topics([], ["fired.a"])
    assert not any(each.crowded_out for each in tenants.snapshot.by_name.values())
    known(tenants)


@pytest.mark.parametrize("room", ["topic gone", "its topic", "policy of another", "its policy"])
def test_there_is_room_again(tenants: Tenants, room: str) -> None:
    tenants.topics.most_unknown = 1
    tenants.note_topics(["fired.a"])
    assert tenants.of("d").crowded_out
    if room == "topic gone":
        tenants.note_topics([], ["fired.a"])
    elif room == "its topic":
        tenants.note_topics(["fired.d"])
    elif room == "policy of another":
        tenants.note_policies(["a"])
    else:
        tenants.note_policies(["d"])
    assert not tenants.of("d").crowded_out


def test_who_has_room_waits_for_none_any_more(tenants: Tenants) -> None:
    """So nothing is put in place for it when others come and go."""
    tenants.topics.most_unknown = 1
    tenants.note_topics(["fired.a"])
    assert tenants.of("d").crowded_out
    tenants.note_topics([], ["fired.a"])
    as_it_is = tenants.snapshot
    assert not tenants.of("d").crowded_out
    tenants.note_policies(["other"])
    assert tenants.snapshot is as_it_is
