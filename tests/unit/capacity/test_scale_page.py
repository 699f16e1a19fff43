"""docs/scale.md: what the model says beside what was measured, and what was only computed.

The measured figures stand here; the page has to show them with what the shipped constants make of
them.  `python -m tests.unit.capacity.test_scale_page` prints the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from belfry.capacity.constants import Constants
from belfry.capacity.demand import Demand
from belfry.capacity.estimate import GB, MIB
from belfry.capacity.model import WorkerNeeds, plan
from belfry.cli.plan import constants_of

PAGE: Final = Path(__file__).parents[3] / "docs" / "scale.md"
LARGE: Final = Demand(
    pending=1e10, fires_per_second=1e6, requests_per_second=1e6, tenants=100, replicas=3
)


# What a worker's start, of 1.17 s of CPU, adds to each of 400 000 requests.
START_US: Final = 2.9
CROWDED_IN: Final = "crowded, `ingest`, 8 partitions"
CROWDED_OUT: Final = "crowded, `fire`, 2 partitions"
CROWDED_FOLLOW: Final = "crowded, `recovery`, 8 partitions"
BESIDE_IN: Final = "2026-11-27, `ingest`"
BESIDE_OUT: Final = "2026-11-27, `fire`"
EVENING_IN: Final = "evening of 2026-11-28, `ingest`"
EVENING_OUT: Final = "evening of 2026-11-28, `fire`"
CURVE: Final = "performance.md, curve"
GROWN: Final = "performance.md, 2026-11-28"
EVENING: Final = "performance.md, evening of 2026-11-27"


class Point(NamedTuple):
    """One measured figure, and what the model says of it."""

    figure: str
    run: str
    measured: float
    unit: str
    model: Callable[[Constants], float]


def cpu(way: str, payload: float, more_us: float = 0.0) -> Callable[[Constants], float]:
    return lambda c: c[f"{way}_cpu_us"] + c[f"{way}_cpu_us_per_byte"] * payload + more_us


def memory(
    partitions: int, *, fires: bool = False, pending: float = 0, payload: float = 400
) -> Callable[[Constants], float]:
    """MB of one worker, as the model has it; `pending` beyond the events of the run."""
    demand = Demand(
        pending=pending,
        fires_per_second=float(fires),
        requests_per_second=1,
        payload=payload,
        standbys=0,
    )
    return lambda c: WorkerNeeds(demand, c).memory(1, partitions).value * GB / MIB


def broker(requests: int, fires: int, payload: float) -> Callable[[Constants], float]:
    return lambda c: (
        requests * c["broker_in_cpu_us"]
        + fires * c["broker_out_cpu_us"]
        + (requests + fires) * payload * c["broker_cpu_us_per_byte"]
    )


def state(payload: float) -> Callable[[Constants], float]:
    return lambda c: c["state_bytes"] + c["state_bytes_per_byte"] * payload


def read_back(payload: float) -> Callable[[Constants], float]:
    return lambda c: 1e6 / (c["read_back_us"] + c["read_back_us_per_byte"] * payload)


POINTS: Final = (
    Point(
        "worker's CPU of a request and its start, 400 bytes",
        EVENING,
        15.2,
        "µs",
        cpu("in", 400, START_US),
    ),
    Point(
        "worker's CPU of a request and its start, 2 000 bytes",
        CURVE,
        39,
        "µs",
        cpu("in", 2000, START_US),
    ),
    Point(
        "worker's CPU of a request and its start, 10 000 bytes",
        CURVE,
        186,
        "µs",
        cpu("in", 1e4, START_US),
    ),
    Point("worker's CPU of a request, 1 000 bytes", CROWDED_IN, 17.6, "µs", cpu("in", 1000)),
    Point("worker's CPU of a fire, 400 bytes", EVENING, 14.4, "µs", cpu("out", 400)),
    Point("worker's CPU of a fire, 1 000 bytes", CROWDED_OUT, 25.5, "µs", cpu("out", 1000)),
    Point("memory, 1 partition, taken in", CURVE, 216, "MB", memory(1)),
    Point("memory, 4 partitions, taken in", BESIDE_IN, 333, "MB", memory(4)),
    Point("memory, 4 partitions, 1 200 000 taken in", BESIDE_IN, 364, "MB", memory(4, pending=8e5)),
    Point(
        "memory, 4 partitions, taken in beside 1 000 000",
        "performance.md, `ingest`",
        361,
        "MB",
        memory(4, pending=1e6),
    ),
    Point(
        "memory, 4 partitions, taken in beside 10 000 000",
        GROWN,
        377,
        "MB",
        memory(4, pending=1e7),
    ),
    Point(
        "memory, 4 partitions, taken in beside 30 000 000",
        GROWN,
        423,
        "MB",
        memory(4, pending=3e7),
    ),
    Point("memory, 16 partitions, taken in", "performance.md, `ingest`", 353, "MB", memory(16)),
    Point("memory, 16 partitions, taken in", BESIDE_IN, 408, "MB", memory(16)),
    Point("memory, 16 partitions, taken in", EVENING_IN, 331, "MB", memory(16)),
    Point(
        "memory, 16 partitions, 2 000 bytes, taken in",
        BESIDE_OUT,
        421,
        "MB",
        memory(16, payload=2000),
    ),
    Point("memory, 32 partitions, 300 000 taken in", BESIDE_OUT, 368, "MB", memory(32)),
    Point("memory, 64 partitions, taken in", "performance.md, `ingest`", 452, "MB", memory(64)),
    Point("memory, 64 partitions, taken in", BESIDE_IN, 391, "MB", memory(64)),
    Point("memory, 64 partitions, taken in", EVENING_IN, 416, "MB", memory(64)),
    Point(
        "memory, 64 partitions, 1 200 000 taken in",
        EVENING_IN,
        450,
        "MB",
        memory(64, pending=8e5),
    ),
    Point(
        "memory, 4 partitions, fired", "performance.md, `fire`", 386, "MB", memory(4, fires=True)
    ),
    Point("memory, 16 partitions, 160 000 fired", EVENING_OUT, 361, "MB", memory(16, fires=True)),
    Point("memory, 64 partitions, 160 000 fired", EVENING_OUT, 387, "MB", memory(64, fires=True)),
    Point(
        "memory, 16 partitions, 2 000 bytes, fired",
        EVENING_OUT,
        472,
        "MB",
        memory(16, fires=True, payload=2000),
    ),
    Point("local state of a schedule, 400 bytes, of 30 000 000", GROWN, 588, "bytes", state(400)),
    Point("local state of a schedule, 1 000 bytes", CROWDED_IN, 1053, "bytes", state(1000)),
    Point(
        "a changelog row and its end, 1 000 bytes",
        BESIDE_OUT,
        1216,
        "bytes",
        lambda c: c["row_bytes"] + c["ended_bytes"] + 1000,
    ),
    Point(
        "a fired record, 1 000 bytes", BESIDE_OUT, 1207, "bytes", lambda c: c["fired_bytes"] + 1000
    ),
    Point("a request, 1 000 bytes", BESIDE_OUT, 1106, "bytes", lambda c: c["request_bytes"] + 1000),
    Point("broker's CPU of a request, 1 000 bytes", CROWDED_IN, 47.2, "µs", broker(1, 0, 1000)),
    Point(
        "broker's CPU of a request and its fire, 1 000 bytes",
        CROWDED_OUT,
        36.6,
        "µs",
        broker(1, 1, 1000),
    ),
    Point("rows read back, 400 bytes", "performance.md, 1 000 000", 122_800, "/s", read_back(400)),
    Point("rows read back, 400 bytes", "performance.md, before", 158_500, "/s", read_back(400)),
    Point("rows read back, 1 000 bytes", CROWDED_FOLLOW, 69_100, "/s", read_back(1000)),
)


def rows(known: Constants) -> Iterator[str]:
    """The rows of the page's tables."""
    for each in POINTS:
        model = each.model(known)
        error = model / each.measured - 1
        yield (
            f"| {each.figure} | {each.run} | {each.measured:g} {each.unit} |"
            f" {float(f'{model:.3g}'):g} {each.unit} | {error:+.0%} |"
        )
    for figure in plan(LARGE, known):
        drivers = ", ".join(f"{name} {share:.0%}" for name, share in figure.drivers()[:2])
        amount = f"{float(f'{figure.value:.3g}'):,.6g}".replace(",", " ")
        yield f"| {figure.name} | {f'{amount} {figure.unit}'.strip()} | {drivers} |"


def test_the_page_has_what_the_model_says() -> None:
    page = PAGE.read_text("utf-8")
    missing = [row for row in rows(constants_of(None)) if row not in page]
    assert not missing


def test_the_page_says_what_the_constants_were_measured_on() -> None:
    (origin,) = {each.origin for each in constants_of(None) if each.origin != "assumed"}
    page = " ".join(PAGE.read_text("utf-8").split())
    assert all(part in page for part in origin.removeprefix("measured ").split(", "))


if __name__ == "__main__":
    print("\n".join(rows(constants_of(None))))  # noqa: T201
