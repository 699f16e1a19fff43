"""Shapes of the JSON answer of `/v1/cluster`: each worker, its partitions, standbys, take-overs.

A worker tells the same of its partitions here as in its health (`worker_answers.py`), and a caller
that is bound to some tenants gets the same shape with nulls.

One worker reads the answers of another (`routes/cluster.py`), which may be of another release. If
that one's answer lacks a field that has no default here, its worker is shown as silent.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from belfry.api.json.worker_answers import ReadyAnswer, RememberedAnswer, instant
from belfry.api.workers.view import StandbyView
from belfry.balance.assignment_map import AssignedMember
from belfry.balance.take_overs import TakeOverEntry


class TakeOverAnswer(BaseModel):
    """A partition that a worker has taken over."""

    partition: int
    at: str = Field(description="When it was owned.")
    took_seconds: float = Field(description="From the begin of the take-over until then.")
    former: str | None = Field(description="The former owner; null if it is not known.")
    cause: str = Field(
        description="`owner_silent`: a standby took it ahead of the group; `owner_gone`: that one"
        " is not in the group any more; `owner_leaving`: it stops, or is unfit; `moved`: shares"
        " were levelled; `started_over`: the same worker, after a failure; `no_owner_known`."
    )
    warm: bool = Field(description="Whether a standby had read the changelog before.")
    records: int | None = Field(
        description="Changelog records that were read meanwhile; null for a caller who is not bound"
        " to all tenants."
    )

    @classmethod
    def of(cls, entry: TakeOverEntry, *, full: bool = True) -> TakeOverAnswer:
        """The answer that shows a take-over; without figures on others' load unless `full`."""
        taken, former, cause = entry
        return cls(
            partition=taken.partition,
            at=instant(taken.at_ms),
            took_seconds=taken.took_ms / 1000,
            former=former,
            cause=str(cause),
            warm=taken.warm,
            records=taken.records if full else None,
        )


class LatenessAnswer(BaseModel):
    """How late the events of the last minute were; of several workers they can be added up."""

    seconds: float = Field(description="Of so many seconds; more where nobody had looked.")
    bounds_seconds: list[float]
    counts: list[int] = Field(
        description="Events that were at most so late, one for each bound, and then all of them."
    )


class WorkerAnswer(ReadyAnswer):
    """One worker of the cluster."""

    worker_id: str
    version: str
    zone_data: str = Field(
        "", description="Version of the time zone data that it finds instants by, such as `2026c`."
    )
    # Counters of this worker begin here.
    started_at: str
    # False asks an orchestrator to restart the process.
    live: bool
    pending: int | None = Field(
        description="Sum over the partitions; null for a caller who is not bound to all tenants."
    )
    fired: int | None = Field(description="Events fired since this worker started; null likewise.")
    lateness: LatenessAnswer | None = Field(
        None,
        description="From due instants to the commits with which readers see the events; null for a"
        " caller who is not bound to all tenants.",
    )
    clock_skew_seconds: float = Field(description="This machine's clock minus the broker's.")
    firing_paused: bool = Field(description="Whether the clock guard holds back firing.")
    take_overs: list[TakeOverAnswer] = Field(
        default_factory=list,
        description="The last 100 partitions that it took over since it started, the latest last.",
    )


class StandbyAnswer(BaseModel):
    """One partition that a worker stands by for."""

    partition: int
    warm: bool = Field(description="Whether it could take over at once.")
    lag_records: int | None = Field(
        description="Changelog records that it has not read yet; null for a caller who is not bound"
        " to all tenants."
    )
    problem: str | None

    @classmethod
    def of(cls, view: StandbyView, *, full: bool = True) -> StandbyAnswer:
        """The answer that shows a standby; without figures on others' load unless `full`."""
        return cls(
            partition=view.partition,
            warm=view.warm,
            lag_records=max(0, view.lag_records) if full else None,
            problem=(view.problem or None) if full else None,
        )


class MemberAnswer(BaseModel):
    """One member of the group, as the group's leader told all workers."""

    worker_id: str
    version: str
    http_url: str
    # Its share of the partitions, in relation to the weights of the others.
    weight: int
    rack: str | None
    leaving: bool = Field(
        description="It stops or is unfit, and gets no partitions while others are fit."
    )
    # Numbers of partitions of the topic of requests.
    owns: list[int]
    stands_by: list[int]

    @classmethod
    def of(cls, entry: AssignedMember) -> MemberAnswer:
        """The answer that shows a member."""
        return cls(
            worker_id=entry.worker,
            version=entry.version,
            http_url=entry.http,
            weight=entry.weight,
            rack=entry.rack or None,
            leaving=entry.leaving,
            owns=list(entry.owns),
            stands_by=list(entry.stands_by),
        )


class ClusterAnswer(BaseModel):
    """Answer of `/v1/cluster`: who owns what in the group, and each worker in full."""

    app_id: str
    kafka_cluster_id: str | None
    members: list[MemberAnswer] = Field(description="All workers, by the group's last rebalance.")
    standbys: list[StandbyAnswer] = Field(description="Of the worker that answers.")
    workers: list[WorkerAnswer] = Field(
        description="The worker that was asked, and then those of the others that answer."
    )
    silent: list[str] = Field(
        default_factory=list, description="Workers of the group that did not answer in time."
    )
    remembered: list[RememberedAnswer] = Field(
        default_factory=list,
        description="Those of them that are shown as they answered before, where `at_once` asks"
        " for it.",
    )
