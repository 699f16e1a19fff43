"""The constants of the model: their meanings, their origins, and which are only assumed.

`belfry bench calibrate` measures those of `MEASURED`; a file of its figures may set those of
`ASSUMED` as well.  Each constant knows its origin, because a plan shows it.

    {"measured_on": "2026-11-20", "machine": "2 cores, …", "payload_bytes": 400,
     "constants": {"in_cpu_us": 14.2, "out_cpu_us": 11.8, "busy": 0.5, …}}

The release brings such a file (`shipped.json`).  A user's file wins over it, and need not have all
constants: the output of an older release lacks newer ones.  A constant that stands in for a missing
one says so.  Units are in the names: `us` microseconds, `mb` MB of 2^20 bytes as `belfry bench`
prints memory.

"Without its payload" and "for each byte of a payload" are two constants of one straight line, which
two runs with payloads of different sizes give:

    cost of an event = in_cpu_us + in_cpu_us_per_byte × bytes of its payload
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import isfinite
from typing import Any, Final

# The meaning of each measured constant.
MEASURED: Final = {
    "in_cpu_us": "worker's CPU to take a request in, without its payload",
    "in_cpu_us_per_byte": "the same for each byte of a payload",
    "out_cpu_us": "worker's CPU to fire an event, without its payload",
    "out_cpu_us_per_byte": "the same for each byte of a payload",
    "follow_cpu_us": "worker's CPU to read a row of the changelog, without its payload",
    "follow_cpu_us_per_byte": "the same for each byte of a payload",
    "read_back_us": "time in which a worker reads a row back, without its payload",
    "read_back_us_per_byte": "the same for each byte of a payload",
    "in_per_second_of_a_partition": "requests that one partition takes in",
    "out_per_second_of_a_partition": "events that one partition fires",
    "cores_of_a_process": "cores that one worker process can use",
    "worker_mb": "memory of a worker that takes requests in, without its partitions",
    "partition_mb": "memory of a partition that takes requests in, while a worker has few",
    "partition_mb_per_byte": "the same for each byte by which payloads are larger",
    "idle_partition_mb": "memory of a partition without load",
    "full_partitions": "partitions of a worker whose buffers are full at a time",
    "firing_mb": "memory of a full step of a partition that fires, without payloads",
    "firing_mb_per_byte": "the same for each byte of a payload",
    "request_bytes": "a request's record, without its payload",
    "row_bytes": "a changelog row, without its payload",
    "ended_bytes": "changelog bytes that a fire leaves for a day",
    "fired_bytes": "a fired record, without its payload",
    "state_bytes": "local state of a schedule, without its payload",
    "state_bytes_per_byte": "local state for each byte of a payload",
    "broker_in_cpu_us": "broker's CPU for a request, without its payload",
    "broker_out_cpu_us": "broker's CPU for an event that fires",
    "broker_cpu_us_per_byte": "broker's CPU for each byte of a payload",
}
# Constants that were not measured: the value, and the reason for it.
ASSUMED: Final[dict[str, tuple[float, str]]] = {
    "busy": (0.6, "share of a core or a partition that is planned for"),
    "disk_full": (0.7, "share of a disk that is planned for"),
    "waiting_mb_per_million": (4.0, "docs/performance.md: 327, 377, 423 MB beside 0, 10^7, 3*10^7"),
    "rows_of_a_partition": (2.5e6, "docs/performance.md: 10 000 000 in 4 partitions"),
    "full_step_payload": (2e3, "docs/workers.md: a step of larger payloads has fewer of them"),
    "full_steps": (4.0, "docs/scale.md: partitions of a worker that always have full steps"),
    "steps_of_many": (1.0, "docs/scale.md: full steps whose room more partitions share"),
    "smallest_tables": (64.0, "partitions of a worker beyond which memory tables shrink no more"),
    "ended_hours": (24.0, "belfry keeps what has ended for a day"),
    "store_spare": (2.0, "RocksDB merges into new files before it drops the old ones"),
    "changelog_dirty": (2.0, "Kafka compacts when half of a log is dirty, by default"),
    "follower_share": (0.5, "CPU of a follower of a replica, in that of its leader"),
    "partitions_of_an_output": (4.0, "partitions of a tenant's output topic"),
    "broker_cores": (16.0, "cores of a broker"),
    "broker_disk_gb": (8_000.0, "disk of a broker"),
    "broker_mb_per_second": (600.0, "half of 10 Gbit/s each way"),
    "broker_partitions": (4_000.0, "replicas of partitions that a broker holds"),
}


# The end of the origin of a constant that the last file lacks.
STANDS_IN: Final = "; they stand in for what the file of constants lacks"


class BadConstants(ValueError):
    """A file of constants that cannot be used.

    The message quotes the name or the value, and says which are allowed.
    """


@dataclass(frozen=True, slots=True)
class Constant:
    """One number: its meaning, and whether it was measured.

    `origin` is ``assumed``, ``given`` (an assumption that a file sets), or when and where it was
    measured.
    """

    name: str
    value: float
    meaning: str
    origin: str


@dataclass(frozen=True, slots=True)
class Constants:
    """All constants, and the payload (bytes) at which rates were measured.

    ``constants["busy"]`` is the value; iterating gives each `Constant` with its origin.
    """

    payload_bytes: float
    by_name: Mapping[str, Constant]

    def __getitem__(self, name: str) -> float:
        return self.by_name[name].value

    def __iter__(self) -> Iterator[Constant]:
        return iter(self.by_name.values())


def constants_from(*files: Mapping[str, Any]) -> Constants:
    """The constants of files, of which later ones win; `BadConstants` says what is wrong.

    `files` are decoded JSON as `belfry bench calibrate` prints it.  All of `MEASURED` have to be in
    one of them; a name that is not in `MEASURED` or `ASSUMED` is refused, with the nearest name.
    Where the last file lacks a measured constant, the origin of the earlier one ends with
    `STANDS_IN`.
    """
    found = {name: Constant(name, value, why, "assumed") for name, (value, why) in ASSUMED.items()}
    payload = 0.0
    for file in files:
        try:
            origin = f"measured {file['measured_on']}, {file['machine']}"
            payload = float(file["payload_bytes"])
            given = dict(file["constants"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadConstants(
                f"{error!r} is missing or wrong: give what `belfry bench calibrate` prints"
            ) from None
        found = {name: _standing_in(old, given) for name, old in found.items()}
        found |= {name: _constant(name, value, origin) for name, value in given.items()}
    missing = MEASURED.keys() - found.keys()
    if missing or not payload > 0:
        raise BadConstants(f"these are missing: {', '.join(sorted(missing)) or 'payload_bytes'}")
    return Constants(payload, found)


def _standing_in(old: Constant, given: Mapping[str, Any]) -> Constant:
    """A constant of an earlier file; its origin says so where a later file lacks it."""
    stays = old.name in ASSUMED or old.name in given or old.origin.endswith(STANDS_IN)
    return old if stays else replace(old, origin=old.origin + STANDS_IN)


def _constant(name: str, value: object, origin: str) -> Constant:
    known = [*MEASURED, *ASSUMED]
    if name not in known:
        near = get_close_matches(name, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise BadConstants(f"no constant is called {name!r}.{guess}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadConstants(f"{name} is {value!r}, which is not a number")
    # Rates and shares are divisors, so they have to be more than 0.
    least = 0.0 if name.endswith(("_us", "_mb", "_bytes", "_per_byte")) else 1e-9
    if not (isfinite(value) and least <= value <= 1e15):
        raise BadConstants(f"{name} is {value}; {least:g} to 1e15 is allowed")
    if name in ("busy", "disk_full") and value > 1:
        raise BadConstants(f"{name} is {value}; at most 1 is allowed")
    if name in ASSUMED:
        return Constant(name, float(value), ASSUMED[name][1], "given")
    return Constant(name, float(value), MEASURED[name], origin)
