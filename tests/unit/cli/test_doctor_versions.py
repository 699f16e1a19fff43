"""What `belfry doctor` says of workers' releases and of their time zone data."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.cli import doctor_cluster
from belfry.cli.check import Status
from belfry.cli.doctor_versions import version_checks
from belfry.schedules.triggers import zones
from belfry.settings import CommandSettings
from tests.unit.cli.test_doctor_cluster import cluster, worker


def with_zones(*versions: str) -> list[dict[str, Any]]:
    return [worker(f"w{number}", zone_data=each) for number, each in enumerate(versions)]


def test_workers_with_several_versions_of_zone_data() -> None:
    (found,) = version_checks(with_zones("2026b", "2026a", "2026b"), "2026b")
    assert found.status is Status.RISK
    assert found.detail == (
        "Workers have several versions of time zone data. 2026a: w1; 2026b: w0, w2."
    )
    assert "the same release of the package tzdata" in found.to_do


def test_zone_data_that_is_older_than_that_of_the_command() -> None:
    (found,) = version_checks(with_zones("2025c", "2025c"), "2026a")
    assert (found.status, found.check) == (Status.RISK, "workers")
    assert "older than this command's, 2026a. 2025c: w0, w1." in found.detail
    assert "update the package tzdata" in found.to_do


def test_what_differs_only_from_an_older_command_is_well() -> None:
    assert [*version_checks(with_zones("2026b", "2026b"), "2026a")] == []
    # Releases that do not tell have no version.
    assert [*version_checks([worker("old"), *with_zones("2026a")], "2026a")] == []


def test_the_doctor_compares_with_what_is_installed_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Remote:
        def __init__(self, _session: Any) -> None:
            """Nobody is asked."""

        def get(self, _path: str) -> Any:
            return cluster(workers=with_zones("2026a", "2026a"))

    monkeypatch.setattr(doctor_cluster, "Remote", Remote)
    session: Any = type("Session", (), {"settings": CommandSettings()})
    for version, number in (("2026a", 0), ("2026b", 1)):
        monkeypatch.setattr(zones, "VERSION", version)
        told = [*doctor_cluster.cluster_checks(session, "kafka-1")]
        assert sum("time zone data" in each.detail for each in told) == number
