"""Constants of round numbers, so that plans can be checked by hand."""

from __future__ import annotations

from typing import Any, Final

FILE: Final[dict[str, Any]] = {
    "measured_on": "2026-01-02",
    "machine": "a test",
    "payload_bytes": 400,
    "constants": {
        "in_cpu_us": 10,
        "in_cpu_us_per_byte": 0.01,
        "out_cpu_us": 16,
        "out_cpu_us_per_byte": 0.01,
        "follow_cpu_us": 5,
        "follow_cpu_us_per_byte": 0.001,
        "read_back_us": 10,
        "read_back_us_per_byte": 0.005,
        "in_per_second_of_a_partition": 50_000,
        "out_per_second_of_a_partition": 25_000,
        "cores_of_a_process": 1.5,
        "worker_mb": 150,
        "partition_mb": 30,
        "partition_mb_per_byte": 0.02,
        "idle_partition_mb": 2,
        "full_partitions": 5,
        "firing_mb": 3,
        "firing_mb_per_byte": 0.01,
        "request_bytes": 100,
        "row_bytes": 200,
        "ended_bytes": 50,
        "fired_bytes": 300,
        "state_bytes": 200,
        "state_bytes_per_byte": 1,
        "broker_in_cpu_us": 5,
        "broker_out_cpu_us": 10,
        "broker_cpu_us_per_byte": 0.01,
    },
}
