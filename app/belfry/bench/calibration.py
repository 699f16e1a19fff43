"""The constants of the capacity model, from the runs of a calibration.

Wherever possible, a constant is a difference between two runs, so that it does not include the cost
of a worker's start. With 400 000 events, payloads of 400 and 2 000 bytes, and a start of 2 s:

    ingest,   400 bytes    CPU 10 s    (10 − 2) s / 400 000 =  20 µs an event
    ingest, 2 000 bytes    CPU 14 s    (14 − 2) s / 400 000 =  30 µs an event
    a byte of payload                  (30 − 20) µs / 1 600 bytes = 0.00625 µs
    an event without its payload       20 µs − 400 × 0.00625 µs = 17.5 µs

Measurements scatter, so a difference may be below 0; a constant is at least 0. This module is pure:
runs come in as values, and `calibrate.py` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.bench.result import Result

# The larger payload is so many times as large as the usual one.
BIGGER: Final = 5
PARTITIONS: Final = 4
# So many partitions that only some of them have full buffers at a time.
MANY: Final = 32


class IdleWorker(NamedTuple):
    """A worker that has nothing to do: its CPU until it is ready, and its memory then.

    `cpu_s` are seconds, the others MB (2^20 bytes) with `PARTITIONS` and with `MANY` partitions.
    """

    cpu_s: float
    mb: float
    many_mb: float


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """One run: its figures, the broker's CPU for it, and the sizes of its state and topics."""

    result: Result
    # CPU seconds of the broker for the run, None where its process is not known.
    broker_cpu_s: float | None
    # Bytes of the worker's local state on disk, after the run.
    state_bytes: int
    # Bytes of all keys, values and headers in the changelog, uncompressed; likewise of the
    # requests.
    changelog_bytes: int
    request_bytes: int
    # Mean bytes of a fired record.
    fired_bytes: float

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the worker."""
        return self.result.cpu_seconds or 0.0

    @property
    def rss_mb(self) -> float:
        """Peak memory of the worker in MB."""
        return self.result.peak_rss_mb or 0.0


def constants_of(runs: dict[str, CalibrationRun], idle: IdleWorker) -> dict[str, float]:
    """The constants by these runs, for each event and each byte of a payload."""
    start_s = idle.cpu_s
    events = runs["in"].result.events
    payload = runs["in"].result.payload_bytes
    in_us, in_byte = _line(runs["in"].cpu_s, runs["in_bigger"].cpu_s, start_s, events, payload)
    out_us, out_byte = _line(runs["out"].cpu_s, runs["out_bigger"].cpu_s, 0.0, events, payload)
    follow_us, follow_byte = _line(
        runs["follow"].cpu_s, runs["follow_bigger"].cpu_s, start_s, events, payload
    )
    read_us, read_byte = _line(
        runs["follow"].result.seconds, runs["follow_bigger"].result.seconds, 0.0, events, payload
    )
    changelog_in = runs["in"].changelog_bytes / events - payload
    before = {"in": start_s, "in_bigger": start_s, "out": 0.0, "out_bigger": 0.0}
    grown = runs["in_bigger"].state_bytes - runs["in"].state_bytes
    state_byte = max(0.0, grown / events / (payload * (BIGGER - 1)))
    found = {
        "in_cpu_us": in_us,
        "in_cpu_us_per_byte": in_byte,
        "out_cpu_us": out_us,
        "out_cpu_us_per_byte": out_byte,
        "follow_cpu_us": follow_us,
        "follow_cpu_us_per_byte": follow_byte,
        "read_back_us": read_us,
        "read_back_us_per_byte": read_byte,
        "in_per_second_of_a_partition": runs["in_one"].result.events_per_second,
        "out_per_second_of_a_partition": runs["out_one"].result.events_per_second,
        # The cores of the busiest run: other work on the machine may have held up the others.
        "cores_of_a_process": max(
            (runs[name].cpu_s - before_s) / runs[name].result.seconds
            for name, before_s in before.items()
        ),
        "request_bytes": runs["in"].request_bytes / events - payload,
        "row_bytes": changelog_in,
        # The bytes that a fire adds to the changelog: the end of a schedule, kept for a day.
        "ended_bytes": max(0.0, runs["out"].changelog_bytes / events - payload - changelog_in),
        "fired_bytes": max(0.0, runs["out"].fired_bytes - payload),
        "state_bytes": max(0.0, runs["in"].state_bytes / events - state_byte * payload),
        "state_bytes_per_byte": state_byte,
    }
    return found | _of_memory(runs, idle) | _of_the_broker(runs, events, payload)


def _of_memory(runs: dict[str, CalibrationRun], idle: IdleWorker) -> dict[str, float]:
    """Memory of a worker that takes requests in, by its number of partitions, and that of fires.

    Of few partitions each has full buffers. A worker with many has full buffers for some at a time,
    and a further partition takes as much as an idle one:

        MB ▲           ________────────   worker + partitions × idle + full × (partition − idle)
           │       ·‾‾‾
           │    ·                         worker + partitions × partition
           │  ·
           └──1──4───────────32──► partitions
    """
    one, some, many = (runs[name].rss_mb for name in ("in_one", "in", "in_many"))
    payload = runs["in"].result.payload_bytes
    larger = payload * (BIGGER - 1)
    partition_mb = max(0.0, (some - one) / (PARTITIONS - 1))
    worker_mb = max(0.0, one - partition_mb)
    idle_mb = max(0.0, (idle.many_mb - idle.mb) / (MANY - PARTITIONS))
    in_buffers_mb = many - worker_mb - MANY * idle_mb
    # A run that fires has taken requests in before, so its peak is the higher one.
    steps_mb = max(0.0, (runs["out"].rss_mb - some) / PARTITIONS)
    bigger_mb = max(0.0, (runs["out_bigger"].rss_mb - runs["in_bigger"].rss_mb) / PARTITIONS)
    firing_byte = max(0.0, (bigger_mb - steps_mb) / larger)
    return {
        "worker_mb": worker_mb,
        "partition_mb": partition_mb,
        "partition_mb_per_byte": max(0.0, (runs["in_bigger"].rss_mb - some) / PARTITIONS / larger),
        "idle_partition_mb": idle_mb,
        # At least one partition has full buffers, and at most all of them.
        "full_partitions": min(max(1.0, in_buffers_mb / max(1e-3, partition_mb - idle_mb)), MANY),
        "firing_mb": max(0.0, steps_mb - firing_byte * payload),
        "firing_mb_per_byte": firing_byte,
    }


def _of_the_broker(runs: dict[str, CalibrationRun], events: int, payload: int) -> dict[str, float]:
    """The broker's CPU, where its process is known; it includes writing the load."""
    cpu = {name: run.broker_cpu_s for name, run in runs.items()}
    took = {name: used for name, used in cpu.items() if used is not None}
    if not took:
        return {}
    both_us, both_byte = _line(took["in"], took["in_bigger"], 0.0, events, payload)
    out_us = max(0.0, took["out"] - took["in"]) * 1e6 / events
    return {
        "broker_in_cpu_us": both_us,
        "broker_cpu_us_per_byte": both_byte,
        "broker_out_cpu_us": out_us,
    }


def _line(
    small_s: float, big_s: float, start_s: float, events: int, payload: int
) -> tuple[float, float]:
    """Microseconds of an event without its payload, and of a byte of the payload."""
    small, big = ((each - start_s) * 1e6 / events for each in (small_s, big_s))
    slope = max(0.0, (big - small) / (payload * (BIGGER - 1)))
    return max(0.0, small - slope * payload), slope
