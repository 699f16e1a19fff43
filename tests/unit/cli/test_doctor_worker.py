"""What `belfry doctor` makes of the pages of one worker."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.cli import doctor_cluster, doctor_worker
from belfry.cli.check import Check, Status
from belfry.cli.doctor_worker import (
    fetch,
    foreign_checks,
    readiness,
    said_by,
    skew,
    worker_checks,
)
from belfry.settings import CommandSettings
from tests.unit.cli.test_doctor_cluster import cluster, worker

URL = "http://worker:8700"


def test_the_largest_skew_counts() -> None:
    page = 'belfry_clock_skew_seconds{a="1"} 0.1\nbelfry_clock_skew_seconds{a="2"} -0.7\nother 9\n'
    assert skew(page) == -0.7
    assert skew("other 9") is None


def test_a_page_that_cannot_be_had_says_why() -> None:
    assert fetch("http://127.0.0.1:1/")[0] is None
    assert fetch("no address")[0] is None


def test_a_worker_that_is_not_ready_is_told_in_sentences() -> None:
    body = {
        "ready": False,
        "problems": ["taking over"],
        "partitions": [
            {"partition": 0, "missing": None},
            {"partition": 2, "missing": "replaying: 3 of 9"},
        ],
    }
    found = readiness(URL, 503, json.dumps(body))
    assert found.status is Status.PROBLEM
    assert found.detail == (
        f"The worker at {URL} is not ready: taking over; partition 2: replaying: 3 of 9."
    )


def test_a_worker_that_tells_strangers_nothing() -> None:
    found = readiness(URL, 503, '{"ready": false, "problems": [], "partitions": []}')
    assert "it does not tell why to callers without a key" in found.detail
    # Who shows a key is told why, so that is still to be said.
    assert said_by(found) == set()


def test_what_tells_what_is_wrong_has_said_it() -> None:
    ill = readiness(URL, 503, '{"ready": false, "problems": ["it starts"], "partitions": []}')
    well = readiness(URL, 200, '{"ready": true}')
    clock = Check("clock", Status.PROBLEM, "It is off.")
    assert said_by(ill, clock) == {"worker", "clock"}
    assert said_by(well, clock) == {"clock"}


def test_a_report_says_once_what_is_wrong_with_the_worker_that_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is not ready and whose clock is off, as its pages and the cluster's tell of it."""
    why = "partitions 0, 1 recover"
    pages = {
        f"{URL}/healthz/ready": (503, json.dumps({"ready": False, "problems": [why]})),
        f"{URL}/metrics": (200, "belfry_clock_skew_seconds 1.5\n"),
    }
    asked = worker("one", problems=[why], clock_skew_seconds=1.5)
    remote = SimpleNamespace(get=lambda path, **_: cluster(workers=[asked, worker("two")]))
    monkeypatch.setattr(doctor_worker, "fetch", pages.__getitem__)
    monkeypatch.setattr(doctor_cluster, "Remote", lambda _: remote)
    monkeypatch.setattr(doctor_worker, "move_checks", lambda _: [])
    monkeypatch.setattr(doctor_worker, "tenant_checks", lambda _: [])
    monkeypatch.setattr(doctor_worker, "quota_checks", lambda _: [])
    session: Any = SimpleNamespace(settings=CommandSettings(http_url=URL))
    found = [*worker_checks(session, "kafka-1")]
    assert [(each.check, each.status) for each in found] == [
        ("worker", Status.PROBLEM),
        ("clock", Status.PROBLEM),
    ]
    assert why in found[0].detail


def test_no_worker_of_a_cluster_that_follows_is_blamed_for_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partition = {"partition": 0, "missing": "other_cluster: the changelog was written in a"}
    told = {"ready": False, "problems": [], "partitions": [partition]}
    pages = {f"{URL}/healthz/ready": (503, json.dumps(told)), f"{URL}/metrics": (200, "")}
    waits = {**worker("two")["partitions"][0], **partition}
    workers = [worker(name, partitions=[waits]) for name in ("one", "two")]
    remote = SimpleNamespace(get=lambda path, **_: cluster(workers=workers))
    monkeypatch.setattr(doctor_worker, "fetch", pages.__getitem__)
    monkeypatch.setattr(doctor_cluster, "Remote", lambda _: remote)
    for each in ("move_checks", "tenant_checks", "quota_checks"):
        monkeypatch.setattr(doctor_worker, each, lambda _: [])
    session: Any = SimpleNamespace(settings=CommandSettings(http_url=URL))
    passive = [*worker_checks(session, "kafka-1", passive=True)]
    assert Status.PROBLEM not in {each.status for each in passive}
    active = [*worker_checks(session, "kafka-1")]
    assert [each.check for each in active if each.status is Status.PROBLEM] == ["worker", "workers"]


@pytest.mark.parametrize("body", ["<html>", "", "[]", '"ready"', '{"status": "up"}'])
def test_what_is_no_worker_is_not_taken_for_one(body: str) -> None:
    found = readiness(URL, 200, body)
    assert found.status is Status.PROBLEM
    assert f"What answers at {URL} is no worker of belfry" in found.detail


def test_records_of_strangers_are_counted_by_topic() -> None:
    page = (
        'belfry_foreign_records_total{topic="changelog"} 3.0\n'
        'belfry_foreign_records_total{topic="tenants"} 0.0\n'
    )
    (found,) = foreign_checks(page)
    assert (found.check, found.status) == ("strangers", Status.RISK)
    assert found.detail.startswith("changelog: 3 records met")
