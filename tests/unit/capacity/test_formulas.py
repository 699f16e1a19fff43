"""Formulas of brokers, disks and recoveries by hand, their bounds, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from belfry.capacity.constants import (
    ASSUMED,
    MEASURED,
    STANDS_IN,
    BadConstants,
    Constant,
    constants_from,
)
from belfry.capacity.demand import BOUNDS, REACHED, BadDemand, Demand
from belfry.capacity.estimate import Estimate, most_of, sum_of
from belfry.capacity.kafka_needs import KafkaNeeds
from belfry.capacity.model import WorkerNeeds
from tests.unit.capacity.constants import FILE

KNOWN = constants_from(FILE)
# 100 bytes of payload make a request of 200, a row of 300, a fired record of 400 bytes.
DEMAND = Demand(
    pending=2e6,
    fires_per_second=2_000,
    requests_per_second=1_000,
    payload=100,
    tenants=500,
    replicas=3,
    standbys=2,
    retention_hours=10,
    consumers=4,
)
ENDS = 2_000 * 86_400
PRINTED = "KeyError('measured_on') is missing or wrong: give what `belfry bench calibrate` prints"
KAFKA = KafkaNeeds(DEMAND, KNOWN)
OURS = WorkerNeeds(DEMAND, KNOWN)


def terms(estimate: Estimate) -> Any:
    return pytest.approx(dict(estimate.terms))


def test_cores_of_brokers() -> None:
    # Two followers cost as much as one leader more, and cores are busy for 60 %.
    scale = 2e-6 / 0.6
    expected = {"requests": 5_000 * scale, "fires": 20_000 * scale, "payloads": 3_000 * scale}
    assert expected == terms(KAFKA.broker_cores())


def test_disks_of_brokers() -> None:
    scale = 3 / 0.7 / 1e9
    assert {
        "requests": 36_000 * 1_000 * 200 * scale,
        "fired events": 36_000 * 2_000 * 400 * scale,
        "pending": 2 * 2e6 * 300 * scale,
        "ends": 2 * ENDS * 50 * scale,
    } == terms(KAFKA.kafka_disk())


def test_network_of_brokers() -> None:
    assert terms(KAFKA.network_in()) == {"requests": 0.6, "changelog": 1.2, "fired events": 2.4}
    assert terms(KAFKA.network_out()) == {
        "requests": 0.2,
        "standbys": 0.8,
        "consumers": 3.2,
        "replicas": 2.8,
    }


def test_how_many_brokers() -> None:
    # 8 160 replicas: twice 360 partitions, and four of each of 500 tenants, three times.
    found = KAFKA.brokers((32.0, 40_000.0, 1_200.0, 600.0), 360)
    expected = {"replicas": 3, "cores": 2, "disk": 5, "network": 2, "partitions": 2.04}
    assert expected == terms(found)
    assert (found.value, found.unit) == (5, "")
    out = KAFKA.brokers((0.0, 0.0, 600.0, 3_660.0), 360)
    assert dict(out.terms)["network"] == pytest.approx(6.1)
    assert out.value == 7


def test_cores_of_workers() -> None:
    # 11 µs a request, 17 a fire, 5.1 a row of a request and 5 that of a fire.
    scale = 1e-6 / 0.6
    assert {
        "requests": 11_000 * scale,
        "fires": 34_000 * scale,
        "standbys": 2 * (5_100 + 10_000) * scale,
    } == terms(OURS.worker_cores())


def test_how_many_workers_and_partitions() -> None:
    assert terms(OURS.workers(4.5)) == {"cores": 3, "standbys": 3}
    assert OURS.workers(4.6).value == 4
    # Rates were measured with 400 bytes, at 14 and 20 µs; 100 bytes take 11 and 17.
    rates = (1_000 * 11 / 14 / 50_000 + 2_000 * 17 / 20 / 25_000) / 0.6
    assert terms(OURS.partitions(5)) == {"rates": rates, "pending": 0.8, "workers": 5}


def test_a_partition_is_no_more_than_a_thousand_times_as_quick() -> None:
    free = {**FILE["constants"], "in_cpu_us": 0, "in_cpu_us_per_byte": 1}
    needs = WorkerNeeds(replace(DEMAND, payload=0), constants_from({**FILE, "constants": free}))
    rates = (1_000 / 5e7 + 2_000 * 0.8 / 25_000) / 0.6
    assert dict(needs.partitions(1).terms)["rates"] == pytest.approx(rates)


def test_a_rate_is_as_measured_where_payloads_cost_nothing() -> None:
    cheap = {**FILE["constants"], "in_cpu_us": 0.5, "in_cpu_us_per_byte": 0}
    needs = WorkerNeeds(
        replace(DEMAND, fires_per_second=0), constants_from({**FILE, "constants": cheap})
    )
    assert dict(needs.partitions(1).terms)["rates"] == pytest.approx(1_000 / 50_000 / 0.6)


def test_memory_of_workers_term_by_term() -> None:
    mb = 2**20 / 1e9
    # 12 partitions are held by 3 workers, of which each has four.
    assert {
        "workers": 450 * mb,
        "partitions": 24 * mb,
        "buffers": 12 * (30 - 2 - 300 * 0.02) * mb,
        "fires": 4 * (3 + 1) * mb,
        "pending": 3 * 2 * 4 * mb,
    } == terms(OURS.memory(3, 4))


def test_partitions_with_load_take_no_less_than_without() -> None:
    small = {**FILE["constants"], "partition_mb": 2.5}
    needs = WorkerNeeds(DEMAND, constants_from({**FILE, "constants": small}))
    assert dict(needs.memory(3, 4).terms)["buffers"] == 0


def test_disks_of_workers() -> None:
    scale = 3 * 2 / 0.7 / 1e9
    expected = {"pending": 2e6 * 300 * scale, "ends": ENDS * 50 * scale}
    assert expected == terms(OURS.worker_disk())


def test_what_is_read_back() -> None:
    # 10.5 µs a row and 10 an end, twice, for the changelog is dirty.
    assert terms(OURS.cold_start(4)) == {"pending": 2 * 21 / 4, "ends": 2 * ENDS * 10e-6 / 4}
    assert OURS.lost_worker(4).value == 0


@pytest.mark.parametrize(("workers", "parts"), [(1, 1), (2, 2), (4, 12)])
def test_what_a_lost_worker_leaves_is_read_by_the_others(workers: int, parts: int) -> None:
    needs = WorkerNeeds(replace(DEMAND, standbys=0), KNOWN)
    expected = {"pending": 42 / parts, "ends": 2 * ENDS * 10e-6 / parts}
    assert expected == terms(needs.lost_worker(workers))


def test_one_standby_is_enough_for_nothing_to_be_read() -> None:
    assert WorkerNeeds(replace(DEMAND, standbys=1), KNOWN).lost_worker(4).value == 0


def test_estimates_are_sums_or_the_largest_rounded_up() -> None:
    parts = (("a", 1.0), ("b", 2.5), ("c", 0.0), ("d", 1.5))
    added = sum_of("x", "GB", "a + b", *parts)
    assert added == Estimate("x", 5.0, "GB", "a + b", parts)
    assert added.drivers() == [("b", 0.5), ("d", 0.3), ("a", 0.2)]
    assert most_of("y", "", "the most", *parts) == Estimate("y", 3.0, "", "the most", parts)
    assert most_of("y", "", "", ("a", 2.0)).value == 2
    assert sum_of("z", "", "", ("a", 0.0)).drivers() == []


@pytest.mark.parametrize("name", BOUNDS)
def test_the_bounds_of_a_demand(name: str) -> None:
    least, most = BOUNDS[name]
    for value in (least, most):
        replace(DEMAND, **{name: value}).check()
    for value in (least - 1, most * 2):
        with pytest.raises(BadDemand) as wrong:
            replace(DEMAND, **{name: value}).check()
        told = f"{name} is {value:g}; {least:g} to {most:g} is allowed."
        assert str(wrong.value) == told


@pytest.mark.parametrize("name", REACHED)
def test_what_was_just_reached_is_not_beyond(name: str) -> None:
    within = replace(DEMAND, **REACHED)
    assert within.beyond() == []
    assert replace(within, **{name: REACHED[name] * 1.5}).beyond() == [name]


def test_what_fires_within_hours() -> None:
    assert DEMAND.fires_within(24) == ENDS


def given(**changed: Any) -> dict[str, Any]:
    return {**FILE, "constants": changed}


def test_where_each_constant_comes_from() -> None:
    found = {each.name: each for each in constants_from(FILE, given(busy=0.5, worker_mb=160))}
    measured = "measured 2026-01-02, a test"
    assert found["busy"] == Constant("busy", 0.5, ASSUMED["busy"][1], "given")
    assert found["disk_full"] == Constant("disk_full", 0.7, ASSUMED["disk_full"][1], "assumed")
    assert found["worker_mb"] == Constant("worker_mb", 160, MEASURED["worker_mb"], measured)
    assert found["row_bytes"] == Constant(
        "row_bytes", 200, MEASURED["row_bytes"], measured + STANDS_IN
    )


def test_what_stands_in_says_so_once() -> None:
    found = {each.name: each for each in constants_from(FILE, given(), given(busy=0.5))}
    assert found["row_bytes"].origin == "measured 2026-01-02, a test" + STANDS_IN
    assert found["disk_full"].origin == "assumed"


def test_the_last_files_payload_is_that_of_rates() -> None:
    assert constants_from(FILE, {**given(), "payload_bytes": 7}).payload_bytes == 7
    assert constants_from({**FILE, "payload_bytes": "0.5"}).payload_bytes == 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("in_cpu_us", 0), ("in_cpu_us_per_byte", 0), ("worker_mb", 0), ("row_bytes", 0),
        ("partition_mb_per_byte", 0), ("busy", 1), ("disk_full", 1), ("busy", 1e-9),
        ("full_partitions", 1e-9), ("row_bytes", 1e15),
    ],
)  # fmt: skip
def test_constants_at_their_bounds(name: str, value: float) -> None:
    assert constants_from(FILE, given(**{name: value}))[name] == value


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (given(in_cpu=3), "no constant is called 'in_cpu'. Did you mean in_cpu_us?"),
        (given(bus=0.5), "no constant is called 'bus'. Did you mean busy?"),
        (given(xyzzy=3), "no constant is called 'xyzzy'."),
        (given(in_cpu_us="3"), "in_cpu_us is '3', which is not a number"),
        (given(in_cpu_us=True), "in_cpu_us is True, which is not a number"),
        (given(in_cpu_us=-1), "in_cpu_us is -1; 0 to 1e15 is allowed"),
        (given(worker_mb=2e15), "worker_mb is 2000000000000000.0; 0 to 1e15 is allowed"),
        (
            given(row_bytes=10**15 + 1),
            "row_bytes is 1000000000000001; 0 to 1e15 is allowed",
        ),
        (given(full_steps=0), "full_steps is 0; 1e-09 to 1e15 is allowed"),
        (given(busy=1.1), "busy is 1.1; at most 1 is allowed"),
        (given(disk_full=1.1), "disk_full is 1.1; at most 1 is allowed"),
        ({**FILE, "payload_bytes": 0}, "these are missing: payload_bytes"),
        (
            {**FILE, "constants": {n: 1 for n in FILE["constants"] if n[:3] not in ("row", "sta")}},
            "these are missing: row_bytes, state_bytes, state_bytes_per_byte",
        ),
        (
            {"machine": "a test"},
            PRINTED,
        ),
    ],
)
def test_what_is_wrong_with_constants(file: dict[str, Any], told: str) -> None:
    with pytest.raises(BadConstants) as wrong:
        constants_from(file)
    assert str(wrong.value) == told
