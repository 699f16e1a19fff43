"""A plan, checked by hand; the whole of it as people see it; and constants that are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from belfry.capacity.constants import (
    ASSUMED,
    MEASURED,
    STANDS_IN,
    BadConstants,
    constants_from,
)
from belfry.capacity.demand import BadDemand, Demand
from belfry.capacity.estimate import MIB
from belfry.capacity.model import WorkerNeeds, plan
from belfry.cli.plan import constants_of, plan_text
from belfry.partitions import step_shares
from tests.unit.capacity.constants import FILE

GOLDEN = Path(__file__).with_name("plan.golden.txt")
LARGE = Demand(pending=1e10, fires_per_second=1e6, requests_per_second=1e6)
SMALL = Demand(
    pending=1e6,
    fires_per_second=1_200,
    requests_per_second=600,
    replicas=1,
    standbys=0,
    retention_hours=1,
    tenants=10,
)


def figures(demand: Demand, **changed: float) -> dict[str, float]:
    given = {**FILE, "constants": {**FILE["constants"], **changed}}
    return {each.name: each.value for each in plan(demand, constants_from(given))}


def test_a_small_plan_by_hand() -> None:
    found = figures(SMALL)
    # 600 · 14 µs and 1 200 · 20 µs, of cores that are busy for 60 %.
    assert found["worker cores"] == pytest.approx((600 * 14e-6 + 1_200 * 20e-6) / 0.6)
    assert found["workers"] == 1
    assert found["partitions"] == 1
    assert found["worker memory"] == pytest.approx((150 + 30 + 7 + 4) * MIB / 1e9)
    # A million rows of 600 bytes, and 24 hours of ends.
    ends = 1_200 * 86_400 * 50
    assert found["worker disk"] == pytest.approx((6e8 + ends) * 2 / 0.7 / 1e9)
    kept = 3_600 * (600 * 500 + 1_200 * 700)
    assert found["Kafka disk"] == pytest.approx((kept + 2 * (6e8 + ends)) / 0.7 / 1e9)
    into = 600 * 500 + 600 * 600 + 1_200 * 50 + 1_200 * 700
    assert found["network into brokers"] == pytest.approx(into / 1e6)
    assert found["network out of brokers"] == pytest.approx((600 * 500 + 1_200 * 700) / 1e6)
    assert found["start without local state"] == pytest.approx(
        2 * (1e6 * 12e-6 + 1_200 * 86_400 * 10e-6)
    )


@pytest.mark.parametrize(
    ("partitions", "standbys", "workers", "payload", "mb"),
    [
        (1, 0, 1, 400, 150 + 30),
        (5, 0, 1, 400, 150 + 5 * 30),
        # From the sixth on none has full buffers, while five others have.
        (6, 0, 1, 400, 150 + 6 * 2 + 5 * 28),
        (64, 0, 1, 400, 150 + 64 * 2 + 5 * 28),
        # Two workers hold 16 partitions and their standbys.
        (16, 1, 2, 400, 2 * 150 + 32 * 2 + 2 * 5 * 28),
        # Beyond 64 of a worker their tables shrink no more.
        (256, 0, 1, 400, 150 + 256 * 2 + 4 * 5 * 28),
        # Payloads that are larger by 1 000 bytes, and beyond what a step has room for.
        (4, 0, 1, 1_400, 150 + 4 * (30 + 20)),
        (4, 0, 1, 50_000, 150 + 4 * (30 + 32)),
        # Smaller ones, and none.
        (64, 0, 1, 0, 150 + 64 * 2 + 5 * 20),
    ],
)
def test_memory_by_hand(
    partitions: int, standbys: int, workers: int, payload: float, mb: float
) -> None:
    demand = replace(SMALL, pending=0, fires_per_second=0, standbys=standbys, payload=payload)
    needs = WorkerNeeds(demand, constants_from(FILE))
    assert needs.memory(workers, partitions).value == pytest.approx(mb * MIB / 1e9)


def test_constants_of_payloads_that_fill_a_step_need_no_more_for_larger_ones() -> None:
    demand = replace(SMALL, pending=0, fires_per_second=0, payload=50_000)
    known = constants_from({**FILE, "payload_bytes": 5_000})
    needed = WorkerNeeds(demand, known).memory(1, 4).value
    assert needed == pytest.approx((150 + 4 * 30) * MIB / 1e9)


@pytest.mark.parametrize(
    ("workers", "partitions", "payload", "mb"),
    [
        # One step of small events each.
        (1, 3, 400, 3 * (3 + 4)),
        # More partitions hold no more than four steps.
        (1, 6, 400, 4 * (3 + 4)),
        (2, 64, 400, 8 * (3 + 4)),
        # Many small steps hold as much as one that payloads fill.
        (1, 7, 0, 7 * 3),
        (1, 8, 0, 3 + 20),
        (2, 64, 0, 2 * (3 + 20)),
        (64, 64, 400, 64 * (3 + 4)),
        (1, 64, 1_000, 4 * (3 + 10)),
        (1, 4, 2_000, 4 * (3 + 20)),
        (1, 20, 2_000, 4 * (3 + 20)),
        (2, 64, 9_000, 8 * (3 + 20)),
    ],
)
def test_four_partitions_of_a_worker_hold_full_steps_and_more_share_that_room(
    workers: int, partitions: int, payload: float, mb: float
) -> None:
    quiet = replace(SMALL, fires_per_second=0, standbys=1, payload=payload)
    known = constants_from(FILE)
    with_fires = WorkerNeeds(replace(quiet, fires_per_second=1), known).memory(workers, partitions)
    without = WorkerNeeds(quiet, known).memory(workers, partitions)
    assert with_fires.value - without.value == pytest.approx(mb * MIB / 1e9)


def test_ten_thousand_million_at_a_million_a_second_is_as_it_was() -> None:
    text = plan_text(LARGE, plan(LARGE, constants_from(FILE)), constants_from(FILE))
    assert text + "\n" == GOLDEN.read_text("utf-8")


def test_what_no_run_has_reached_is_said() -> None:
    assert SMALL.beyond() == []
    assert LARGE.beyond() == ["pending", "fires_per_second", "requests_per_second", "replicas"]


def test_what_is_assumed_may_be_given() -> None:
    few, many = figures(LARGE, broker_disk_gb=64_000), figures(LARGE, broker_disk_gb=1_000)
    assert few["brokers"] < many["brokers"]


def test_what_is_assumed_of_steps_is_what_workers_do() -> None:
    known = constants_of(None)
    assert known["full_steps"] == step_shares.FEW == step_shares.TOGETHER / step_shares.FULL
    assert known["steps_of_many"] == step_shares.OF_MANY / step_shares.FULL


def test_the_shipped_constants_are_measured_all() -> None:
    shipped = constants_of(None)
    assert {each.name for each in shipped if each.origin.startswith("measured")} == set(MEASURED)
    assert {each.name for each in shipped if each.origin == "assumed"} == set(ASSUMED)


def test_a_file_of_a_release_that_measured_less(tmp_path: Path) -> None:
    """It is read, and the plan says which constants are not those of the file."""
    added = {
        "partition_mb_per_byte",
        "idle_partition_mb",
        "full_partitions",
        "firing_mb",
        "firing_mb_per_byte",
    }
    older = {name: value for name, value in FILE["constants"].items() if name not in added}
    path = tmp_path / "older.json"
    path.write_bytes(orjson.dumps({**FILE, "constants": older}))
    found, shipped = constants_of(path), constants_of(None)
    assert {each.name for each in found if each.origin.endswith(STANDS_IN)} == added
    assert all(found[name] == shipped[name] for name in added)
    assert found["partition_mb"] == FILE["constants"]["partition_mb"]
    text = plan_text(SMALL, plan(SMALL, found), found)
    listed = text.partition(f"{STANDS_IN}:")[2].partition("\n\n")[0].split()
    assert added <= set(listed)
    assert "worker_mb" not in listed


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ({}, "'measured_on'"),
        ({**FILE, "constants": {}}, "these are missing: broker_cpu_us_per_byte"),
        ({**FILE, "payload_bytes": 0}, "payload_bytes"),
        ({**FILE, "constants": {"in_cpu": 3}}, "Did you mean in_cpu_us?"),
        ({**FILE, "constants": {"in_cpu_us": "3"}}, "'3', which is not a number"),
        ({**FILE, "constants": {"in_cpu_us": float("nan")}}, "in_cpu_us is nan; 0 to"),
        ({**FILE, "constants": {"busy": 0}}, "busy is 0; 1e-09 to"),
        ({**FILE, "constants": {"busy": 2}}, "at most 1"),
    ],
)
def test_a_file_of_constants_that_is_none(file: dict[str, Any], told: str) -> None:
    with pytest.raises(BadConstants) as wrong:
        constants_from(file)
    assert told in str(wrong.value)


@pytest.mark.parametrize("pending", [-1.0, float("nan"), float("inf"), 1e14])
def test_a_demand_out_of_bounds(pending: float) -> None:
    with pytest.raises(BadDemand, match="pending is "):
        plan(
            Demand(pending=pending, fires_per_second=1, requests_per_second=1), constants_from(FILE)
        )
