"""Work that the other side does by itself: requests carried ahead of their verdicts, and jobs.

Whether a fire of the source comes there too depends on the history of its schedule:

    begun by a carried request      it comes, by an id that counts from where the request lies there
    changed by carried requests     it comes by the same id: each raises the version by one at most
    moved by a job under way        it comes; what is due before the job reaches it has the old id
    changed by one that nobody      it may come: a request in a registry's schema may be about any
      can read here                 schedule, and the registry is not asked

    row that was carried    version 2
    carried behind it       an UPSERT of it, a bulk MOVE that is under way
    fired in the source     version 3: by the same id      4: perhaps by another one      5: lost
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from belfry.schedules.bulk import BULK, MOVE, BulkSpec, read_bulk
from belfry.schedules.identity import generation_at, partition_of_life
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.layout import keys
from belfry.store.layout.jobs import RUNNING, JobRow, names_of_job
from belfry.verification.awaited import group_lock
from belfry.verification.memory import Remembered
from belfry.verification.rows import Over
from belfry.wire import moves
from belfry.wire.headers import asked_by
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

# A topic, a partition, and an offset.
Place = tuple[str, int, int]
# A partition, and an offset there.
At = tuple[int, int]
# A place without records, so that all come later.
_BEFORE_ALL: At = -1, -1


class MovingJob(NamedTuple):
    """A bulk job that moves schedules: its tenant, its id, its filter, and its progress.

    `behind` is the changelog key of the last schedule that it has looked at.
    """

    tenant: str
    job: str
    spec: BulkSpec
    behind: bytes = b""

    def may_move(self, name: bytes, its: Remembered | Over) -> bool:
        """Whether a schedule may be one of those that it goes on to move.

        The filter's type, state and instants do not count: rows that are remembered do not say how
        they stood when the job came by.
        """
        if name <= self.behind:
            return False
        spec, first = self.spec, keys.schedule_key(self.tenant, self.spec.schedule_id or "")
        if spec.schedule_id is not None:
            return name == first
        if not name.startswith(first + spec.prefix.encode()):
            return False
        if spec.group is None or isinstance(its, Over):
            return True
        return its.group == group_lock(self.tenant.encode(), spec.group.encode())


class LostRequest(NamedTuple):
    """A request that was not carried: its offset, its time, and its content.

    `action`, `tenant` and `schedule_id` are empty where it cannot be read. It is `unread` where a
    registry's schema might tell them, and has a `job` where it asks for one that moves schedules.
    """

    offset: int
    at_ms: int
    key: bytes | None
    action: str = ""
    tenant: str = ""
    schedule_id: str = ""
    unread: bool = False
    job: MovingJob | None = None


def lost_request(record: SourceRecord) -> LostRequest:
    """A request as it is listed; one that a key group be moved has the action MOVE."""
    offset, at_ms, key, value, _ = record
    if moves.is_move(record):
        said = moves.decode_move(value or b"")
        asks = said is not None and said.kind == moves.MOVE
        return LostRequest(offset, at_ms, key, "MOVE" if asks else "")
    reader = RequestReader()
    read = reader.read_whole(record)
    asked = asked_by(record) if isinstance(read, Rejection) else read
    if asked is None:
        return LostRequest(offset, at_ms, key, unread=reader.needed(record) is not None)
    action, tenant, schedule_id = (
        str(asked.get("action") or ""),
        asked["tenant"],
        asked["schedule_id"],
    )
    job = None if isinstance(read, Rejection) else _job_of(read)
    return LostRequest(offset, at_ms, key, action, tenant, schedule_id, job=job)


def _job_of(request: Request) -> MovingJob | None:
    """The job that a request asks for, where that moves schedules."""
    if request["action"] != BULK:
        return None
    return _moving(request["tenant"], request["schedule_id"], request["bulk"])


def job_under_way(key: bytes, row: JobRow) -> MovingJob | None:
    """The job of a row under this changelog key, where it is under way and moves schedules."""
    tenant, job = names_of_job(key)
    if row.state != RUNNING:
        return None
    return _moving(tenant.decode(), job, row.spec, row.cursor.encode())


def _moving(tenant: str, job: str, text: str | None, behind: bytes = b"") -> MovingJob | None:
    spec = read_bulk(text)
    if isinstance(spec, Rejection) or spec.action != MOVE:
        return None
    return MovingJob(tenant, job, spec, behind)


class Comes(NamedTuple):
    """Whether a fire comes on the other side as well, and whether surely by the same id."""

    again: bool
    same_id: bool


class JudgedAnew:
    """Requests of all partitions that were carried ahead of their verdicts, by their offsets; and
    jobs that were under way.
    """

    def __init__(self) -> None:
        self._offsets: set[At] = set()
        # Those that ask for a schedule, which they begin or change; by where each came in first,
        # for it may lie in several partitions on its way.
        self._asking: dict[bytes, dict[Place, At]] = {}
        self._unread: dict[Place, At] = {}
        # A job works in each home of its tenant, and moves a schedule once.
        self._jobs: dict[tuple[str, str], dict[At, MovingJob]] = {}

    def take(self, partition: int, its: LostRequest, first: Place) -> None:
        """A further one, which came in `first` at a place."""
        at = partition, its.offset
        self._offsets.add(at)
        if its.unread:
            self._unread[first] = at
        if its.action == "UPSERT":
            name = keys.schedule_key(its.tenant, its.schedule_id)
            self._asking.setdefault(name, {})[first] = at
        if its.job is not None:
            self.take_job(at, its.job)

    def take_job(self, at: At, job: MovingJob) -> None:
        """A job that moves schedules, whose request lies there."""
        self._jobs.setdefault((job.tenant, job.job), {})[at] = job

    def comes(self, name: bytes, was: Remembered | None, its: Remembered | Over) -> Comes:
        """Whether a schedule reaches its state of the source, by the records carried of it.

        `was` is the row that was carried. Each request raises a schedule's version by one at most,
        and so does each job.
        """
        goes_on = was is not None and was.life == its.life
        if was is not None and goes_on:
            begun, version = _BEFORE_ALL, was.version
        else:
            partition = partition_of_life(its.life)
            begun, version = (partition, its.life - generation_at(partition, 0)), 1
            if begun not in self._offsets:
                return Comes(again=False, same_id=False)
        surely = version + _later(self._asking.get(name, {}).values(), begun)
        perhaps = surely + _later(self._unread.values(), begun)
        for job in self._jobs.values():
            reaches = (at for at, each in job.items() if each.may_move(name, its))
            perhaps += min(1, _later(reaches, begun))
        return Comes(its.version <= perhaps, goes_on and its.version <= surely)


def _later(places: Iterable[At], begun: At) -> int:
    """How many of them do not lie before the request that began a schedule, as far as is known."""
    return sum(at != begun and (at[0] != begun[0] or at[1] > begun[1]) for at in places)
