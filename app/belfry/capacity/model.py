"""The model: the needs of a cluster for a demand.

Each estimate is the sum or the largest of its terms, so that it shows which term drives it.
Schedules fire once; a recurring one counts as a request for each of its fires.  The formulas of
workers are here, those of brokers in `kafka_needs.py`.

    demand ─► cores ─► workers ─┬─► partitions ─► memory
          └─► bytes ─► disks, network ─► brokers

An example with round constants (14 µs a request, 12 µs a fire, 5 µs a row to follow, busy 0.6):

    10 000 requests/s, 10 000 fires/s, one standby
    worker cores = (0.14 + 0.12 + 0.10) / 0.6 = 0.6
    workers      = the most of 0.6 / cores_of_a_process, and 1 + standbys = 2
                   here the standby drives it, not the load, and the plan says so

The model is linear, and a cluster is not: queues grow before a core is full.  So it plans for 60 %
of each core and partition (`busy`), and says which demands no run has ever reached
(`Demand.beyond`).  docs/scale.md compares it with runs, and gives its errors.
"""

from __future__ import annotations

from belfry.capacity.constants import Constants
from belfry.capacity.demand import Demand
from belfry.capacity.estimate import GB, MIB, Estimate, most_of, sum_of
from belfry.capacity.kafka_needs import KafkaNeeds


def plan(demand: Demand, constants: Constants) -> list[Estimate]:
    """All estimates, the workers' before Kafka's; raises `BadDemand`.

    Some estimates use others: partitions are at least as many as workers, memory counts both, and
    brokers carry the sum of cores, disk and network.
    """
    demand.check()
    ours, kafka = WorkerNeeds(demand, constants), KafkaNeeds(demand, constants)
    cores = ours.worker_cores()
    workers = ours.workers(cores.value)
    partitions = ours.partitions(workers.value)
    disk, network_in, network_out = kafka.kafka_disk(), kafka.network_in(), kafka.network_out()
    broker_cores = kafka.broker_cores()
    loads = (broker_cores.value, disk.value, network_in.value, network_out.value)
    return [
        *(partitions, workers, cores),
        ours.memory(workers.value, partitions.value),
        ours.worker_disk(),
        kafka.brokers(loads, partitions.value),
        *(broker_cores, disk, network_in, network_out),
        ours.cold_start(workers.value),
        ours.lost_worker(workers.value),
    ]


class WorkerNeeds:
    """The formulas of workers, each a method; they are monotone in every demand but for recoveries.

    Monotone: a larger demand never lowers a need.  Only the time to read back after a loss falls
    when more workers share it.
    """

    def __init__(self, demand: Demand, constants: Constants) -> None:
        self._d, self._c = demand, constants
        self._ended = demand.fires_within(constants["ended_hours"])

    def worker_cores(self) -> Estimate:
        """CPU of all workers: requests in, events out, and rows that standbys follow."""
        d, c = self._d, self._c
        scale = 1e-6 / c["busy"]
        return sum_of(
            "worker cores",
            "cores",
            "(requests/s · in_cpu + fires/s · out_cpu + standbys · rows/s · follow_cpu) / busy",
            ("requests", d.requests_per_second * self._cpu("in", d.payload) * scale),
            ("fires", d.fires_per_second * self._cpu("out", d.payload) * scale),
            ("standbys", d.standbys * self._followed() * scale),
        )

    def workers(self, cores: float) -> Estimate:
        """Processes: Python's global lock bounds the cores that one of them can use."""
        return most_of(
            "workers",
            "processes",
            "the most of cores / cores_of_a_process and 1 + standbys, rounded up",
            ("cores", cores / self._c["cores_of_a_process"]),
            ("standbys", 1 + self._d.standbys),
        )

    def partitions(self, workers: float) -> Estimate:
        """Partitions of requests: each has one thread that takes in and fires, and one store.

        The intake and firing share that thread, so their loads are added, each as a share of the
        rate of a partition that does nothing else.
        """
        d, c = self._d, self._c
        load = d.requests_per_second / self._rate("in") + d.fires_per_second / self._rate("out")
        return most_of(
            "partitions",
            "",
            "the most of (requests/s / in_rate + fires/s / out_rate) / busy,"
            " pending / rows_of_a_partition, and workers, rounded up",
            ("rates", load / c["busy"]),
            ("pending", d.pending / c["rows_of_a_partition"]),
            ("workers", workers),
        )

    def memory(self, workers: float, partitions: float) -> Estimate:
        """Memory of all workers at full speed; standbys hold as much as owners, but do not fire.

        A partition that takes requests in has buffers, and tables that are not yet written to disk.
        Of all partitions of a worker only a few have full ones at a time.  A partition that fires
        has a step.  `full_steps` partitions of a worker always have a full one, and more partitions
        together hold as much as `steps_of_many` steps that payloads fill.  With round constants
        (worker 200, partition 35, idle 1, of which 4 are full, 10 for a step that fires, 40 for one
        that is filled, of which 4 and 2 fit):

            partitions of a worker      1     4     8    16    64
            MB, taking in             235   340   344   352   400
            MB, firing                245   380   424   432   480

        Beyond `smallest_tables` partitions the full tables grow with the number of partitions.
        """
        d, c = self._d, self._c
        copies = 1 + d.standbys
        held = copies * partitions
        full = c["full_partitions"] * max(workers, held / c["smallest_tables"])
        few = c["full_steps"] * self._firing_mb(d.payload)
        many = c["steps_of_many"] * self._firing_mb(c["full_step_payload"])
        return sum_of(
            "worker memory",
            "GB",
            "workers · worker_mb + held · idle_partition_mb + buffers · the least of held and"
            " full_partitions · the most of workers and held / smallest_tables"
            " + the least of partitions · firing_mb and workers · the most of"
            " full_steps · firing_mb and steps_of_many · that of payloads that fill a step"
            " + (1 + standbys) · pending · waiting_mb,"
            " where held = (1 + standbys) · partitions",
            ("workers", workers * c["worker_mb"] * MIB / GB),
            ("partitions", held * c["idle_partition_mb"] * MIB / GB),
            ("buffers", min(held, full) * self._buffers_mb() * MIB / GB),
            (
                "fires",
                min(partitions * self._firing_mb(d.payload), workers * max(few, many)) * MIB / GB,
            ),
            ("pending", copies * d.pending / 1e6 * c["waiting_mb_per_million"] * MIB / GB),
        )

    def _buffers_mb(self) -> float:
        """The memory of a partition that takes requests in, beyond that of one without load."""
        c = self._c
        larger = self._in_a_step(self._d.payload) - self._in_a_step(c.payload_bytes)
        more = c["partition_mb_per_byte"] * larger
        return max(0.0, c["partition_mb"] - c["idle_partition_mb"] + more)

    def _firing_mb(self, payload: float) -> float:
        """The memory of a full step of events with such payloads; 0 where no event fires."""
        c = self._c
        step_mb = c["firing_mb"] + c["firing_mb_per_byte"] * self._in_a_step(payload)
        return step_mb if self._d.fires_per_second > 0 else 0.0

    def _in_a_step(self, payload: float) -> float:
        """A step has so many events at most, and so many bytes, so larger payloads add nothing."""
        return min(payload, self._c["full_step_payload"])

    def worker_disk(self) -> Estimate:
        """Local state of owners and standbys: pending schedules, and markers of a day's ends.

        RocksDB merges into new files before it drops the old ones, hence `store_spare`.
        """
        d, c = self._d, self._c
        scale = (1 + d.standbys) * c["store_spare"] / c["disk_full"] / GB
        waiting = c["state_bytes"] + d.payload * c["state_bytes_per_byte"]
        return sum_of(
            "worker disk",
            "GB",
            "(pending · state + fires/s · 3600 · ended_hours · ended_bytes)"
            " · (1 + standbys) · store_spare / disk_full",
            ("pending", d.pending * waiting * scale),
            ("ends", self._ended * c["ended_bytes"] * scale),
        )

    def cold_start(self, workers: float) -> Estimate:
        """Seconds until all workers, without local state, have read the changelog."""
        return sum_of(
            "start without local state",
            "s",
            "changelog_dirty · (pending · row_time + ends · end_time) / workers",
            *self._read_back(1 / workers),
        )

    def lost_worker(self, workers: float) -> Estimate:
        """Seconds of reading after the loss of one worker; 0 where standbys are warm."""
        share = 0.0 if self._d.standbys >= 1 else 1 / (workers * max(1.0, workers - 1))
        return sum_of(
            "changelog to read after a worker's loss",
            "s",
            "its share of the rows, read by the other workers; nothing where there are standbys",
            *self._read_back(share),
        )

    def _read_back(self, share: float) -> tuple[tuple[str, float], ...]:
        """Seconds in which one worker reads a share of the changelog; ends have no payload.

        A dirty log has rows that were replaced by later ones, and they are read as well.
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

        There is one row for each request, with its payload, and one for each fire, without a
        payload.
        """
        rows_us = self._d.requests_per_second * self._cpu("follow", self._d.payload)
        return rows_us + self._d.fires_per_second * self._c["follow_cpu_us"]

    def _cpu(self, way: str, payload: float) -> float:
        return self._c[f"{way}_cpu_us"] + self._c[f"{way}_cpu_us_per_byte"] * payload

    def _rate(self, way: str) -> float:
        """Events a second of one partition, fewer where each costs more.

        The rate was measured with `Constants.payload_bytes`; a larger payload costs more CPU, and
        the rate goes down in that proportion.
        """
        dearer = self._cpu(way, self._d.payload) / max(self._cpu(way, self._c.payload_bytes), 1e-9)
        return self._c[f"{way}_per_second_of_a_partition"] / max(dearer, 1e-3)
