"""The overview says what is wrong: partitions that do not fire, warnings, nobody who stands by."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from belfry.console.overview import _lately, _lateness, _problems, _unguarded
from belfry.console.places import late_workers
from belfry.console.words import epoch_ms
from tests.unit.console.conftest import WORKER


def cluster(**changed: Any) -> dict[str, Any]:
    worker: dict[str, Any] = {
        "worker_id": "one", "problems": [], "warnings": [], "firing_paused": False,
        "partitions": [{"partition": 2, "missing": None}],
    }  # fmt: skip
    members = [{"owns": [2], "stands_by": []}, {"owns": [], "stands_by": [2]}]
    return {"workers": [worker | changed], "silent": [], "remembered": [], "members": members}


def what(found: list[dict[str, str]]) -> list[str]:
    assert all(each["do"] for each in found)
    return [each["what"] for each in found]


def test_nothing_is_wrong() -> None:
    assert (_problems(cluster(), []), _unguarded(cluster())) == ([], "")


def test_a_partition_that_does_not_fire_is_a_problem() -> None:
    given = cluster(partitions=[{"partition": 2, "missing": "Kafka does not answer: no route"}])
    said = what(_problems(given, []))
    assert said == ["Partition 2 does not fire: Kafka does not answer: no route."]


def test_warnings_are_problems_and_older_workers_have_none() -> None:
    given = cluster(warnings=["the disk is nearly full"])
    assert what(_problems(given, [])) == ["one: the disk is nearly full."]
    del given["workers"][0]["warnings"]
    assert _problems(given, []) == []


def test_partitions_that_nobody_stands_by_for_are_told() -> None:
    alone = cluster() | {"members": [{"owns": [0, 1], "stands_by": []}]}
    assert _unguarded(alone).startswith("There is one worker, and nobody stands by for 2 of 2 ")
    two = [{"owns": [0], "stands_by": []}, {"owns": [1], "stands_by": [0]}]
    said = _unguarded(cluster() | {"members": two})
    assert said.startswith("There are 2 workers, and nobody stands by for 1 of 2 partitions")


def test_a_worker_that_does_not_answer_is_a_problem_unless_its_last_answer_is_shown() -> None:
    given = cluster() | {"silent": ["two", "three"]}
    given["remembered"] = [{"worker_id": "two", "at": "2030-01-01T09:00:00.000Z"}]
    assert what(_problems(given, [])) == ["three does not answer."]
    late, lost = late_workers(given, epoch_ms("2030-01-01T09:00:04.000Z"))
    assert (late["name"], late["age_ms"]) == ("two", 4_000)
    assert (lost["name"], lost["at"], lost["age_ms"]) == ("three", None, None)


def test_lateness_is_that_of_all_workers_together() -> None:
    one = {"seconds": 60.0, "bounds_seconds": [0.001, 0.01], "counts": [90, 100, 100]}
    other = {"seconds": 90.0, "bounds_seconds": [0.001, 0.01], "counts": [0, 0, 200]}
    # One of an older release tells none, and one of a later one may have other bounds.
    foreign = {"seconds": 9.0, "bounds_seconds": [0.5], "counts": [7, 7]}
    workers = [{"lateness": each} for each in (one, other, foreign, None)] + [{}]
    assert _lateness([{"lateness": one}]) == {"p50": 1.0, "p99": 10.0, "over": 60_000.0}
    assert _lateness(workers) == {"p50": 10.0, "p99": 10.0, "over": 90_000.0}
    assert set(_lateness([{}]).values()) == {None}


def test_who_is_bound_to_some_tenants_is_shown_no_lateness(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers tell it those alone who are bound to all."""
    monkeypatch.setitem(WORKER, "lateness", None)
    page = client.get("/")
    assert page.status_code == 200
    assert "Lateness p99, last minute</dt><dd>–" in page.text


def test_the_last_day_tells_of_take_overs_after_silence_and_failure() -> None:
    def moved(cause: str, at: str) -> dict[str, Any]:
        return {"cause": cause, "at": at, "partition": 1}

    given = [
        moved("moved", "2030-01-01T09:00:00.000Z"),
        moved("owner_silent", "2030-01-01T08:00:00.000Z"),
        moved("started_over", "2030-01-01T08:59:00.000Z"),
        moved("owner_gone", "2029-12-31T08:59:00.000Z"),
        moved("of a later release", "2030-01-01T09:00:00.000Z"),
    ]
    found = _lately([{"worker_id": "w", "take_overs": given}], epoch_ms("2030-01-01T09:00:00.000Z"))
    assert [each["cause"] for each in found] == ["started_over", "owner_silent"]
    assert all(each["why"] and each["to"] == "w" for each in found)
