"""The model: a demand, and what a cluster needs for it.

Each estimate is a sum, or the largest, of terms, so that it shows what drives it.  Schedules fire
once; a recurring one counts as a request for each of its fires.

    demand ─► cores ─► workers ─┬─► partitions ─► memory
          └─► bytes ─► disks, network ─► brokers

An example with round constants (14 µs a request, 12 µs a fire, 5 µs a row to follow, busy 0.6):

    10 000 requests/s, 10 000 fires/s, one standby
    worker cores = (0.14 + 0.12 + 0.10) / 0.6 = 0.6
    workers      = the most of 0.6 / cores_of_a_process, and 1 + standbys = 2
                   here the standby drives it, not the load, and the plan says so

The model is linear, and a cluster is not: queues grow before a core is full.  That is why it plans
for 60 % of each core and partition (`busy`), and says which demands no run has ever reached
(`Demand.beyond`).  docs/scale.md says how far it was off where it was compared with runs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil, isfinite
from typing import Final

from belfry.capacity.constants import Constants

MB: Final = 1e6
GB: Final = 1e9
HOUR_S: Final = 3_600.0
# The least and the most of each demand.
BOUNDS: Final = {
    "pending": (0.0, 1e13),
    "fires_per_second": (0.0, 1e9),
    "requests_per_second": (0.0, 1e9),
    "payload": (0.0, 1e6),
    "tenants": (1.0, 1e8),
    "replicas": (1.0, 16.0),
    "standbys": (0.0, 8.0),
    "retention_hours": (0.0, 1e5),
    "consumers": (0.0, 1e3),
}
# The most that a run of docs/performance.md has reached.
REACHED: Final = {
    "pending": 1e7,
    "fires_per_second": 1e5,
    "requests_per_second": 1e5,
    "payload": 1e4,
    "tenants": 1e4,
    "replicas": 1.0,
    "standbys": 1.0,
}


class BadDemand(ValueError):
    """A demand that no plan can be made for.

    The message quotes the number, and says which bounds it has.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The load of a cluster; `retention_hours` is that of requests and fired events.

    `pending` schedules wait at a time; rates are those of the busiest time, not of an average day.
    `payload` is bytes of an event, `tenants` counts output topics, `consumers` how many read each
    fired event.  `replicas` are those of every topic, `standbys` those of every partition.
    """

    pending: float
    fires_per_second: float
    requests_per_second: float
    payload: float = 400.0
    tenants: float = 100.0
    replicas: float = 3.0
    standbys: float = 1.0
    retention_hours: float = 168.0
    consumers: float = 1.0

    def check(self) -> None:
        """Raise `BadDemand` for a number that is out of its bounds.

        They are wider than any cluster so far, and keep a slip of a unit, or a NaN, from giving a
        plan that looks like one.
        """
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if not (isfinite(value) and least <= value <= most):
                raise BadDemand(f"{name} is {value:g}; {least:g} to {most:g} is allowed.")

    def beyond(self) -> list[str]:
        """The demands that no measured run has reached; there a plan is a guess, and says so."""
        return [
            each.name
            for each in fields(self)
            if each.name in REACHED and getattr(self, each.name) > REACHED[each.name]
        ]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One thing that is needed: how much, by which formula, and of what that is made up.

    `formula` is text for people, in the names of the constants.  `terms` are what is added, or
    compared, in the unit of the value.
    """

    name: str
    value: float
    unit: str
    formula: str
    terms: tuple[tuple[str, float], ...]

    def drivers(self) -> list[tuple[str, float]]:
        """What drives it: its terms as shares of all of them, the largest first.

        ``[("fires", 0.7), ("requests", 0.3)]``; terms of nothing are left out.
        """
        whole = sum(value for _, value in self.terms)
        shares = [(name, value / whole) for name, value in self.terms if whole > 0 and value > 0]
        return sorted(shares, key=lambda each: -each[1])


def plan(demand: Demand, constants: Constants) -> list[Estimate]:
    """All estimates, the workers' before Kafka's; raises `BadDemand`.

    Some need others: partitions are at least as many as workers, memory counts both, and brokers
    carry the sum of cores, disk and network.
    """
    demand.check()
    model = _Model(demand, constants)
    cores = model.worker_cores()
    workers = model.workers(cores.value)
    partitions = model.partitions(workers.value)
    disk, network_in, network_out = model.kafka_disk(), model.network_in(), model.network_out()
    broker_cores = model.broker_cores()
    loads = (broker_cores.value, disk.value, network_in.value, network_out.value)
    return [
        *(partitions, workers, cores),
        model.memory(workers.value, partitions.value),
        model.worker_disk(),
        model.brokers(loads, partitions.value),
        *(broker_cores, disk, network_in, network_out),
        model.cold_start(workers.value),
        model.lost_worker(workers.value),
    ]


class _Model:
    """The formulas, each a method; they are monotone in every demand but for the recoveries.

    Monotone: more of a demand never needs less of anything.  Only what is read back after a loss
    gets less when more workers share it.
    """

    def __init__(self, demand: Demand, constants: Constants) -> None:
        self._d, self._c = demand, constants
        self._ended = demand.fires_per_second * HOUR_S * constants["ended_hours"]
        self._row = constants["row_bytes"] + demand.payload
        self._request = constants["request_bytes"] + demand.payload
        self._fired = constants["fired_bytes"] + demand.payload

    def worker_cores(self) -> Estimate:
        """CPU of all workers: requests in, events out, and rows that standbys follow."""
        d, c = self._d, self._c
        scale = 1e-6 / c["busy"]
        return _sum(
            "worker cores",
            "cores",
            "(requests/s · in_cpu + fires/s · out_cpu + standbys · rows/s · follow_cpu) / busy",
            ("requests", d.requests_per_second * self._cpu("in", d.payload) * scale),
            ("fires", d.fires_per_second * self._cpu("out", d.payload) * scale),
            ("standbys", d.standbys * self._followed() * scale),
        )

    def workers(self, cores: float) -> Estimate:
        """Processes: Python's global lock bounds the cores that one of them can use."""
        return _most(
            "workers",
            "processes",
            "the most of cores / cores_of_a_process and 1 + standbys, rounded up",
            ("cores", cores / self._c["cores_of_a_process"]),
            ("standbys", 1 + self._d.standbys),
        )

    def partitions(self, workers: float) -> Estimate:
        """Partitions of requests: each has one thread that takes in and fires, and one store.

        Taking in and firing share that thread, so their loads are added, each as a share of what a
        partition can do alone.
        """
        d, c = self._d, self._c
        load = d.requests_per_second / self._rate("in") + d.fires_per_second / self._rate("out")
        return _most(
            "partitions",
            "",
            "the most of (requests/s / in_rate + fires/s / out_rate) / busy,"
            " pending / rows_of_a_partition, and workers, rounded up",
            ("rates", load / c["busy"]),
            ("pending", d.pending / c["rows_of_a_partition"]),
            ("workers", workers),
        )

    def memory(self, workers: float, partitions: float) -> Estimate:
        """Memory of all workers; owners and standbys hold the same for a partition."""
        d, c = self._d, self._c
        copies = 1 + d.standbys
        waiting = d.pending / 1e6 * c["waiting_mb_per_million"]
        return _sum(
            "worker memory",
            "GB",
            "workers · worker_mb"
            " + (1 + standbys) · (partitions · partition_mb + pending · waiting_mb)",
            ("workers", workers * c["worker_mb"] * MB / GB),
            ("partitions", copies * partitions * c["partition_mb"] * MB / GB),
            ("pending", copies * waiting * MB / GB),
        )

    def worker_disk(self) -> Estimate:
        """Local state of owners and standbys: what waits, and a day's ends with their markers.

        RocksDB merges into new files before it drops the old ones, hence `store_spare`.
        """
        d, c = self._d, self._c
        scale = (1 + d.standbys) * c["store_spare"] / c["disk_full"] / GB
        waiting = c["state_bytes"] + d.payload * c["state_bytes_per_byte"]
        return _sum(
            "worker disk",
            "GB",
            "(pending · state + fires/s · 3600 · ended_hours · ended_bytes)"
            " · (1 + standbys) · store_spare / disk_full",
            ("pending", d.pending * waiting * scale),
            ("ends", self._ended * c["ended_bytes"] * scale),
        )

    def broker_cores(self) -> Estimate:
        """CPU of all brokers; a follower of a replica costs a share of its leader."""
        d, c = self._d, self._c
        followers = 1 + (d.replicas - 1) * c["follower_share"]
        scale = followers * 1e-6 / c["busy"]
        payloads = (d.requests_per_second + d.fires_per_second) * d.payload
        return _sum(
            "broker cores",
            "cores",
            "(requests/s · broker_in_cpu + fires/s · broker_out_cpu + payload bytes/s · cpu_byte)"
            " · (1 + (replicas - 1) · follower_share) / busy",
            ("requests", d.requests_per_second * c["broker_in_cpu_us"] * scale),
            ("fires", d.fires_per_second * c["broker_out_cpu_us"] * scale),
            ("payloads", payloads * c["broker_cpu_us_per_byte"] * scale),
        )

    def kafka_disk(self) -> Estimate:
        """Disks of all brokers: requests and events for their retention, and the changelog.

        The changelog is compacted, so it holds what waits and what has ended within a day, and as
        much again while half of it is dirty.
        """
        d, c = self._d, self._c
        scale = d.replicas / c["disk_full"] / GB
        kept_s = d.retention_hours * HOUR_S
        dirty = c["changelog_dirty"]
        return _sum(
            "Kafka disk",
            "GB",
            "(retention · (requests/s · request + fires/s · fired)"
            " + changelog_dirty · (pending · row + ends · ended_bytes)) · replicas / disk_full",
            ("requests", d.requests_per_second * kept_s * self._request * scale),
            ("fired events", d.fires_per_second * kept_s * self._fired * scale),
            ("pending", dirty * d.pending * self._row * scale),
            ("ends", dirty * self._ended * c["ended_bytes"] * scale),
        )

    def network_in(self) -> Estimate:
        """What brokers receive: each record once by its producer, and again by each follower."""
        d = self._d
        scale = d.replicas / MB
        return _sum(
            "network into brokers",
            "MB/s",
            "(requests/s · (request + row) + fires/s · (fired + ended_bytes)) · replicas",
            ("requests", d.requests_per_second * self._request * scale),
            ("changelog", self._changelog_bytes() * scale),
            ("fired events", d.fires_per_second * self._fired * scale),
        )

    def network_out(self) -> Estimate:
        """What brokers send: to workers, to standbys, to consumers, and to each other."""
        d = self._d
        written = (
            d.requests_per_second * self._request
            + self._changelog_bytes()
            + d.fires_per_second * self._fired
        )
        return _sum(
            "network out of brokers",
            "MB/s",
            "requests/s · request + standbys · changelog/s + consumers · fires/s · fired"
            " + (replicas - 1) · all that is written",
            ("requests", d.requests_per_second * self._request / MB),
            ("standbys", d.standbys * self._changelog_bytes() / MB),
            ("consumers", d.consumers * d.fires_per_second * self._fired / MB),
            ("replicas", (d.replicas - 1) * written / MB),
        )

    def brokers(self, loads: tuple[float, ...], partitions: float) -> Estimate:
        """Brokers: the scarcest of cores, disk, network and replicas of partitions.

        `loads` are cores, GB of disk, and MB/s in and out.  Twice the partitions stands for the
        topics of requests and of the changelog.
        """
        d, c = self._d, self._c
        cores, disk, into, out = loads
        replicas = (2 * partitions + d.tenants * c["partitions_of_an_output"]) * d.replicas
        return _most(
            "brokers",
            "",
            "the most of replicas, cores / broker_cores, disk / broker_disk, network /"
            " broker_mb_per_second, and replicas of partitions / broker_partitions, rounded up",
            ("replicas", d.replicas),
            ("cores", cores / c["broker_cores"]),
            ("disk", disk / c["broker_disk_gb"]),
            ("network", max(into, out) / c["broker_mb_per_second"]),
            ("partitions", replicas / c["broker_partitions"]),
        )

    def cold_start(self, workers: float) -> Estimate:
        """Seconds until all workers, without local state, have read the changelog."""
        return _sum(
            "start without local state",
            "s",
            "changelog_dirty · (pending · row_time + ends · end_time) / workers",
            *self._read_back(1 / workers),
        )

    def lost_worker(self, workers: float) -> Estimate:
        """Seconds of reading after one worker's loss; nothing where standbys are warm."""
        share = 0.0 if self._d.standbys >= 1 else 1 / (workers * max(1.0, workers - 1))
        return _sum(
            "changelog to read after a worker's loss",
            "s",
            "its share of the rows, read by the other workers; nothing where there are standbys",
            *self._read_back(share),
        )

    def _read_back(self, share: float) -> tuple[tuple[str, float], ...]:
        """Seconds in which one worker reads a share of the changelog; ends have no payload.

        A dirty log holds rows that others have replaced, and they are read as well.
        """
        c = self._c
        scale = share * c["changelog_dirty"] * 1e-6
        row_us = c["read_back_us"] + c["read_back_us_per_byte"] * self._d.payload
        return (
            ("pending", self._d.pending * row_us * scale),
            ("ends", self._ended * c["read_back_us"] * scale),
        )

    def _followed(self) -> float:
        """Microseconds of CPU a second that following all partitions takes.

        One row for each request, with its payload, and one for each fire, without.
        """
        rows_us = self._d.requests_per_second * self._cpu("follow", self._d.payload)
        return rows_us + self._d.fires_per_second * self._c["follow_cpu_us"]

    def _changelog_bytes(self) -> float:
        d = self._d
        ends = d.fires_per_second * self._c["ended_bytes"]
        return d.requests_per_second * self._row + ends

    def _cpu(self, way: str, payload: float) -> float:
        return self._c[f"{way}_cpu_us"] + self._c[f"{way}_cpu_us_per_byte"] * payload

    def _rate(self, way: str) -> float:
        """Events a second of one partition: as many fewer as each costs more.

        The rate was measured with `Constants.payload_bytes`; a larger payload costs more CPU, and
        the rate goes down in that proportion.
        """
        dearer = self._cpu(way, self._d.payload) / max(self._cpu(way, self._c.payload_bytes), 1e-9)
        return self._c[f"{way}_per_second_of_a_partition"] / max(dearer, 1e-3)


def _sum(name: str, unit: str, formula: str, *terms: tuple[str, float]) -> Estimate:
    return Estimate(name, sum(value for _, value in terms), unit, formula, terms)


def _most(name: str, unit: str, formula: str, *terms: tuple[str, float]) -> Estimate:
    return Estimate(name, float(ceil(max(value for _, value in terms))), unit, formula, terms)
