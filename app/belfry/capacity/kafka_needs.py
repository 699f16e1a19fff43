"""The needs of brokers: cores, disks and network, and the number of brokers.

Each record is written once by its producer, once more by each follower, and read by each of its
consumers.  The records of one event, from its request to its fire:

    request   request_bytes + payload     kept for the retention
    row       row_bytes + payload         in the changelog, until it fires
    fired     fired_bytes + payload       kept for the retention
    end       ended_bytes                 in the changelog, for a day
"""

from __future__ import annotations

from belfry.capacity.constants import Constants
from belfry.capacity.demand import HOUR_S, Demand
from belfry.capacity.estimate import GB, MB, Estimate, most_of, sum_of


class KafkaNeeds:
    """The formulas of brokers, each a method; a larger demand never lowers a need."""

    def __init__(self, demand: Demand, constants: Constants) -> None:
        self._d, self._c = demand, constants
        self._ended = demand.fires_within(constants["ended_hours"])
        self._row = constants["row_bytes"] + demand.payload
        self._request = constants["request_bytes"] + demand.payload
        self._fired = constants["fired_bytes"] + demand.payload

    def broker_cores(self) -> Estimate:
        """CPU of all brokers; a follower of a replica costs a share of its leader."""
        d, c = self._d, self._c
        followers = 1 + (d.replicas - 1) * c["follower_share"]
        scale = followers * 1e-6 / c["busy"]
        payloads = (d.requests_per_second + d.fires_per_second) * d.payload
        return sum_of(
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

        The changelog is compacted, so it holds pending schedules and those that have ended within a
        day, and as much again while half of it is dirty.
        """
        d, c = self._d, self._c
        scale = d.replicas / c["disk_full"] / GB
        kept_s = d.retention_hours * HOUR_S
        dirty = c["changelog_dirty"]
        return sum_of(
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
        """The bytes that brokers receive: each record by its producer, and by each follower."""
        d = self._d
        scale = d.replicas / MB
        return sum_of(
            "network into brokers",
            "MB/s",
            "(requests/s · (request + row) + fires/s · (fired + ended_bytes)) · replicas",
            ("requests", d.requests_per_second * self._request * scale),
            ("changelog", self._changelog_bytes() * scale),
            ("fired events", d.fires_per_second * self._fired * scale),
        )

    def network_out(self) -> Estimate:
        """The bytes that brokers send: to workers, to standbys, to consumers, and to each other."""
        d = self._d
        written = (
            d.requests_per_second * self._request
            + self._changelog_bytes()
            + d.fires_per_second * self._fired
        )
        return sum_of(
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
        return most_of(
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

    def _changelog_bytes(self) -> float:
        """Bytes a second that are written to the changelog, without followers."""
        d = self._d
        ends = d.fires_per_second * self._c["ended_bytes"]
        return d.requests_per_second * self._row + ends
