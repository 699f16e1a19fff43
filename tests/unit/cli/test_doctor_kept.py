"""What `belfry doctor` says of settings that workers share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.cli.check import Status
from belfry.cli.doctor_kept import judge, settings_checks
from belfry.kafka import agreement
from belfry.settings import Settings
from belfry.settings.agreement import statement
from tests.unit.kafka.test_agreement import NEW, OLD, Cluster, keep

USUAL = statement(Settings())


def test_owners_that_agree() -> None:
    (found,) = judge({0: USUAL, 1: USUAL}, 4)
    assert (found.check, found.status) == ("settings", Status.OK)
    assert found.detail == "Workers agree on what they share, as owners of 2 of 4 partitions said."


def test_a_rolling_restart_that_is_not_over() -> None:
    (found,) = judge({0: USUAL, 1: statement(Settings(lifecycle="ALL")), 2: USUAL}, 3)
    assert found.status is Status.RISK
    assert found.detail == (
        "BELFRY_LIFECYCLE differs between owners: FAILURES at partitions 0, 2, ALL at partition 1."
        " Why: an outcome is told by one owner, and not by another."
    )
    assert "one by one" in found.to_do


def test_two_secrets() -> None:
    one, other = (statement(Settings(http_worker_secret=each)) for each in (OLD, NEW))
    (found,) = judge({0: one, 1: other}, 2)
    assert found.status is Status.PROBLEM
    assert found.detail.startswith(
        "BELFRY_HTTP_WORKER_SECRET differs between owners: a secret of digest "
    )
    assert OLD not in found.detail


def test_it_is_asked_of_kafka_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    admin: Any = Cluster()
    monkeypatch.setattr(agreement, "OffsetNotes", lambda *_: admin)
    known = admin.list_topics(5)
    assert [each.status for each in settings_checks(known, Settings())] == [Status.SKIPPED]
    keep(admin, 0)
    keep(admin, 1, claims="signed", http_worker_secret=OLD)
    details = [each.detail for each in settings_checks(known, Settings())]
    assert any("trusted at partition 0, signed at partition 1" in each for each in details)
    admin.away = True
    (silent,) = settings_checks(known, Settings())
    assert silent.status is Status.SKIPPED
    nothing = SimpleNamespace(topics={})
    assert list(settings_checks(nothing, Settings())) == []
