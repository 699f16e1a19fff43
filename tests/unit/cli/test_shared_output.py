"""Where the commands look for the events of tenants that share an output."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from belfry.cli.failures import WrongUse
from belfry.cli.program import program
from belfry.cli.verified_topics import VerifiedTopics
from belfry.kafka.rights import sink_rights, tenant_rights
from belfry.kafka.wanted_topics import of_tenants
from belfry.settings.cluster import ClusterSettings
from belfry.tenants.policy import TenantPolicy
from belfry.verification.coverage import Coverage

SHARED = "belfry.fired"
TOPICS = ["belfry.fired", "belfry.fired.old", "belfry.lifecycle", "messages"]


def verified(*policies: TenantPolicy) -> VerifiedTopics:
    topics = VerifiedTopics("belfry.".__add__, ())
    topics.follow({each.tenant: each for each in policies})
    return topics


def test_the_verifier_reads_the_shared_topic_also_when_nobody_shares_it_any_more() -> None:
    assert verified().outputs(TOPICS) == ["belfry.fired", "belfry.fired.old"]


def test_the_verifier_looks_there_for_the_events_of_those_who_share() -> None:
    found = verified(TenantPolicy("shop", output="SHARED"), TenantPolicy("mail"))
    coverage = Coverage(found.fired, {SHARED: 7}, found.tenants, found.repeats)
    assert coverage.topic_of("shop") == SHARED
    assert coverage.floor_of(b"shop/a") == 7
    assert coverage.topic_of("mail") == "belfry.fired.mail"
    assert coverage.tenants_of(SHARED) == ["shop"]


def test_an_event_that_comes_twice_is_a_breach_there_whatever_a_policy_says() -> None:
    bulk = TenantPolicy("bulk", output="SHARED", guarantee="AT_LEAST_ONCE")
    loose = TenantPolicy("loose", guarantee="AT_LEAST_ONCE")
    found = verified(bulk, loose)
    coverage = Coverage(found.fired, {}, found.tenants, found.repeats)
    assert not coverage.may_repeat(SHARED)
    assert coverage.may_repeat("belfry.fired.loose")


def test_nobody_gets_the_right_to_read_it_unasked() -> None:
    for shared in (False, True):
        rights = [
            *tenant_rights("belfry.", "shop", shared=shared),
            *sink_rights("belfry.", "archive", ["shop"], shared=shared),
        ]
        reached = [
            each
            for each in rights
            if each.kind == "topic"
            and (each.name == SHARED or (each.prefixed and SHARED.startswith(each.name)))
        ]
        assert [each.operations for each in reached] == [("Read", "Describe")] * (2 * shared)


def test_a_sink_has_to_say_what_it_reads() -> None:
    answer = CliRunner().invoke(program(), ["acls", "sink", "archive"])
    assert isinstance(answer.exception, WrongUse)
    answer = CliRunner().invoke(program(), ["acls", "sink", "archive", "--shared-output"])
    assert "--topic belfry.fired\n" in answer.stdout


@pytest.mark.parametrize("topic", TOPICS)
def test_its_settings_are_looked_at_like_those_of_other_outputs(topic: str) -> None:
    found = of_tenants(ClusterSettings(), TOPICS)
    assert found.get(topic) == ("fired" if topic.startswith(SHARED) else None)
