"""Which settings have to be equal on all workers: each has an answer, and differences are found."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.settings import ClusterSettings, DeliverySettings, Settings
from belfry.settings.agreement import (
    WORKER_SECRET,
    cluster_differences,
    decode,
    differences,
    disagreements,
    encode,
    statement,
    told,
)
from belfry.settings.agreement_rules import AGREED, OWN, AgreementRule

OLD = "the old secret of the workers"
NEW = "the new secret of the workers"
# Another value of each setting that may change.
OTHERS: dict[str, Any] = {
    "http_worker_secret": OLD,
    "claims": "signed",
    "changelog": "signed",
    "policies": "signed",
    "unknown_tenants": "closed",
    "unknown_tenants_most": 7,
    "default_delivery": "ENVELOPE",
    "lifecycle": "ALL",
    "key_group_moves": True,
    "schema_registry_url": "http://registry",
    "registry_subjects": "RECORD",
    "registry_wait_ms": 1,
    "registry_lookups_per_minute": 1,
    "catch_up_limit_ms": 1,
    "assignment": "hash",
    "standbys": 2,
    "canary_interval_ms": 10_000,
    "metering_interval_ms": 3_600_000,
    "payload_store": "s3://bucket/belfry",
    "day_store": "s3://bucket/days",
    "webhook_secrets": {"main": OLD},
    "webhook_private_networks": ["10.0.0.0/8"],
}


def worker(**given: Any) -> dict[str, Any]:
    """What a worker with these settings says, as it is read again."""
    return decode(encode(statement(Settings(**given))))


def named(found: list[Any]) -> list[str]:
    return [each.name for each in found]


def test_every_setting_has_one_answer() -> None:
    own = [name for names in OWN.values() for name in names]
    asked = set(Settings.model_fields) - {"cluster"}
    asked |= {f"cluster.{name}" for name in ClusterSettings.model_fields}
    assert sorted([*AGREED, *own]) == sorted(asked)


def test_every_setting_that_may_change_is_compared() -> None:
    may_change = {name for name, each in AGREED.items() if each.rule is not AgreementRule.FIXED}
    assert may_change - {"http_worker_secret_also"} == set(OTHERS)


@pytest.mark.parametrize("name", OTHERS)
def test_another_value_is_a_difference_in_both_directions(name: str) -> None:
    usual, other = worker(), worker(**{name: OTHERS[name]})
    assert named(differences(usual, other)) == [name]
    assert named(differences(other, usual)) == [name]
    assert differences(other, other) == []


def test_what_each_worker_has_for_itself_is_no_difference() -> None:
    own = {"http_port": 1, "batch_records": 3, "worker_weight": 0, "session_timeout_ms": 6_000}
    assert differences(worker(), worker(**own)) == []


def test_a_difference_names_the_setting_and_both_values() -> None:
    found = differences(worker(), worker(lifecycle="ALL", standbys=2))
    assert told(found) == (
        "BELFRY_LIFECYCLE is ALL here, and was kept as FAILURES;"
        " BELFRY_STANDBYS is 2 here, and was kept as 1"
    )


def test_what_only_one_of_two_releases_knows_is_not_compared() -> None:
    mine = worker()
    assert differences({"of_another_release": 1, "claims": mine["claims"]}, mine) == []
    assert differences({}, mine) == []
    assert decode(b"no JSON") == decode(b"[]") == {}


@pytest.mark.parametrize("odd", [True, 7, "text", {"a": 1}])
def test_a_secret_that_is_no_list_of_digests_is_a_damaged_note_and_agrees(odd: object) -> None:
    kept = {WORKER_SECRET: odd}
    for secrets in (["ab12"], []):
        mine = {WORKER_SECRET: secrets}
        assert differences(kept, mine) == []
        assert disagreements({0: kept, 1: mine}) == {}


@pytest.mark.parametrize(
    ("kept", "mine", "agree"),
    [
        ((OLD, None), (OLD, None), True),
        ((OLD, None), (OLD, NEW), True),
        ((OLD, NEW), (NEW, OLD), True),
        ((NEW, OLD), (NEW, None), True),
        ((None, None), (None, None), True),
        ((OLD, None), (NEW, None), False),
        # A round was left out: those that run do not believe the new one yet.
        ((OLD, None), (NEW, OLD), False),
        ((OLD, NEW), (NEW, None), False),
        ((OLD, None), (None, None), False),
        ((None, None), (OLD, None), False),
    ],
)
def test_secrets_agree_where_each_believes_what_the_other_signs(
    kept: tuple[str | None, str | None], mine: tuple[str | None, str | None], agree: bool
) -> None:
    one, other = (
        worker(http_worker_secret=first, http_worker_secret_also=also)
        for first, also in (kept, mine)
    )
    found = differences(one, other)
    assert found == [] if agree else named(found) == ["http_worker_secret"]
    assert all(each.rule is AgreementRule.TOGETHER for each in found)


def test_no_secret_is_said() -> None:
    given: dict[str, Any] = {"http_worker_secret": OLD, "webhook_secrets": {"main": NEW}}
    text = encode(statement(Settings(**given)))
    assert OLD not in text
    assert NEW not in text
    shown = told(differences(worker(), worker(**given)))
    assert OLD not in shown
    assert NEW not in shown
    assert "no secret" in shown


def test_the_same_secret_looks_otherwise_in_another_belfry() -> None:
    other = ClusterSettings(app_id="other")
    one = worker(http_worker_secret=OLD)
    assert (
        one["http_worker_secret"]
        != worker(http_worker_secret=OLD, cluster=other)["http_worker_secret"]
    )


def test_a_registrys_address_is_each_workers_own() -> None:
    one, other = ("http://a:pw@one", "http://two")
    assert differences(worker(schema_registry_url=one), worker(schema_registry_url=other)) == []
    assert "pw" not in encode(statement(Settings(schema_registry_url=one)))


def test_only_those_that_deliver_say_how() -> None:
    apart = worker(role="schedule", webhook_private_networks=["10.0.0.0/8"])
    assert differences(apart, worker()) == []
    dispatcher = statement(DeliverySettings(webhook_private_networks=["10.0.0.0/8"]))
    assert named(differences(worker(), dispatcher)) == ["webhook_private_networks"]
    assert "claims" not in dispatcher


def test_fixed_settings_are_compared_by_name() -> None:
    four, eight = (
        Settings(cluster=ClusterSettings(partitions=number)).cluster_fingerprint()
        for number in (4, 8)
    )
    found = cluster_differences(four, eight)
    assert told(found) == "BELFRY_CLUSTER__PARTITIONS is 8 here, and was kept as 4"
    assert found[0].rule is AgreementRule.FIXED
    assert cluster_differences(b'{"partitions":4}', four) == []


def test_partitions_are_told_by_the_value_of_their_owners() -> None:
    usual, other = worker(), worker(lifecycle="ALL")
    assert disagreements({0: usual, 1: other, 2: usual}) == {
        "lifecycle": {"FAILURES": [0, 2], "ALL": [1]}
    }
    assert disagreements({0: usual, 1: usual, 2: {}}) == {}


def test_owners_in_two_rounds_of_a_change_agree_and_three_do_not() -> None:
    first = worker(http_worker_secret=OLD)
    second = worker(http_worker_secret=OLD, http_worker_secret_also=NEW)
    third = worker(http_worker_secret=NEW, http_worker_secret_also=OLD)
    assert disagreements({0: first, 1: second}) == {}
    assert disagreements({0: second, 1: third}) == {}
    assert list(disagreements({0: first, 1: second, 2: third})) == ["http_worker_secret"]
