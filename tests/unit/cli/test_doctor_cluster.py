"""What `belfry doctor` says of all workers, as one of them tells of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.cli.check import Check, Status
from belfry.cli.doctor_cluster import Expected, judge

NOW_S = 1_800_000_000.0
HERE = Expected("belfry", "kafka-1", NOW_S)


def partition(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "partition": number,
        "missing": None,
        "ingest_lag_records": 0,
        "oldest_due_at": None,
        "waiting_for": None,
        **changed,
    }


def worker(name: str, **changed: Any) -> dict[str, Any]:
    return {
        "worker_id": name,
        "version": "1.0",
        "live": True,
        "problems": [],
        "warnings": [],
        "clock_skew_seconds": 0.001,
        "partitions": [partition(0)],
        **changed,
    }


def member(name: str, owns: list[int], stands_by: list[int]) -> dict[str, Any]:
    url = f"http://{name}:8700"
    return {"worker_id": name, "owns": owns, "stands_by": stands_by, "http_url": url}


def cluster(**changed: Any) -> dict[str, Any]:
    return {
        "app_id": "belfry",
        "kafka_cluster_id": "kafka-1",
        "members": [member("one", [0], [1]), member("two", [1], [0])],
        "workers": [worker("one"), worker("two")],
        "silent": [],
        **changed,
    }


def judged(**changed: Any) -> Check:
    """The one thing that is found."""
    (found,) = judge(cluster(**changed), HERE)
    return found


def test_all_is_well() -> None:
    found = judged()
    assert (found.status, found.detail) == (
        Status.OK,
        "All 2 workers are of one release, and nothing is late.",
    )


def test_a_worker_that_hangs_is_named_with_its_address() -> None:
    found = judged(silent=["two"], workers=[worker("one")])
    assert found.status is Status.PROBLEM
    assert "two is in the group and does not answer at http://two:8700" in found.detail
    assert "restarting it is safe" in found.to_do


def test_a_worker_whose_thread_stands_still() -> None:
    found = judged(workers=[worker("one"), worker("two", live=False)])
    assert (found.status, found.to_do) == (Status.PROBLEM, "restart it, which is safe")
    assert "two stands still" in found.detail


def test_workers_of_several_releases() -> None:
    found = judged(workers=[worker("one"), worker("two", version="0.9")])
    assert (found.status, found.to_do) == (Status.RISK, "finish the rolling restart")
    assert found.detail == "Workers are of several releases. 0.9: two; 1.0: one."


def test_partitions_that_nobody_stands_by_for() -> None:
    found = judged(members=[member("one", [0], []), member("two", [1], [0])])
    assert found.status is Status.RISK
    assert "Nobody stands by for partition 1:" in found.detail


def test_one_worker_has_no_standby_and_the_check_of_the_group_says_so() -> None:
    alone = {"members": [member("one", [0, 1], [])], "workers": [worker("one")]}
    assert judged(**alone).status is Status.OK


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"missing": "replaying: 3 of 9"}, Status.PROBLEM, "does not fire: replaying: 3 of 9."),
        ({"ingest_lag_records": 100_001}, Status.RISK, "100001 requests of partition 0"),
        (
            {"oldest_due_at": "2027-01-15T07:59:00.000Z", "waiting_for": "firing"},
            Status.PROBLEM,
            "an event of partition 0 has been due for 60 s",
        ),
    ],
)
def test_a_partition_that_falls_behind(changed: dict[str, Any], status: Status, said: str) -> None:
    found = judged(workers=[worker("one", partitions=[partition(0, **changed)])])
    assert found.status is status
    assert said in found.detail


@pytest.mark.parametrize(
    "changed",
    [
        {"ingest_lag_records": 100_000},
        {"ingest_lag_records": None},
        {"oldest_due_at": "2027-01-15T07:59:31.000Z", "waiting_for": "firing"},
        {"oldest_due_at": "2020-01-15T07:59:00.000Z", "waiting_for": "ack_lock"},
    ],
)
def test_a_partition_that_does_not(changed: dict[str, Any]) -> None:
    assert judged(workers=[worker("one", partitions=[partition(0, **changed)])]).status is Status.OK


def test_warnings_and_problems_of_any_worker_are_told() -> None:
    found = judged(workers=[worker("one"), worker("two", warnings=["the disk is nearly full"])])
    assert (found.status, found.detail) == (Status.RISK, "two: the disk is nearly full.")
    found = judged(workers=[worker("one"), worker("two", problems=["it starts"])])
    assert (found.status, found.detail) == (Status.PROBLEM, "two: it starts.")


def test_a_clock_that_is_off() -> None:
    found = judged(workers=[worker("one"), worker("two", clock_skew_seconds=-0.7)])
    assert found.status is Status.PROBLEM
    assert "The clock of two differs from the broker's by -700 ms" in found.detail


def test_a_worker_of_another_belfry_is_judged_no_further() -> None:
    found = judged(app_id="other", silent=["two"])
    assert "belongs to the belfry other" in found.detail


def test_a_worker_at_another_kafka() -> None:
    assert "uses the Kafka cluster kafka-2" in judged(kafka_cluster_id="kafka-2").detail


def test_where_nobody_told_of_the_cluster_it_is_not_compared() -> None:
    (found,) = judge(cluster(kafka_cluster_id="kafka-2"), HERE._replace(kafka_cluster_id=None))
    assert found.status is Status.OK


def test_what_was_said_of_the_worker_that_is_asked_is_not_repeated() -> None:
    ill: dict[str, Any] = {
        "problems": ["it starts"],
        "partitions": [partition(0, missing="replaying: 3 of 9")],
        "clock_skew_seconds": -0.7,
    }
    found = cluster(workers=[worker("one", **ill), worker("two", **ill)])

    def told(*said: str) -> list[str]:
        checks = [*judge(found, HERE._replace(said=frozenset(said)))]
        assert {each.status for each in checks} <= {Status.PROBLEM}
        return [each.detail.partition(" differs")[0] for each in checks]

    of_two = [
        "two: it starts.",
        "The clock of two",
        "two: partition 0 does not fire: replaying: 3 of 9.",
    ]
    assert told("worker", "clock") == of_two
    assert told("worker") == ["The clock of one", *of_two]
    of_one = [each.replace("two", "one") for each in of_two]
    assert told("clock") == [of_one[0], of_one[2], *of_two]
    assert told() == [*of_one, *of_two]


def test_where_something_was_said_all_is_not_well() -> None:
    starting = worker("one", problems=["it starts"])
    found = cluster(workers=[starting, worker("two")])
    assert list(judge(found, HERE._replace(said=frozenset({"worker"})))) == []
