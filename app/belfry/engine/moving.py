"""The work of moves of key groups in a step, besides taking their records in.

Groups that leave are given away slice by slice, and requests that waited for one go on.
"""

from __future__ import annotations

from belfry.engine.admission import Admission
from belfry.engine.aside import Aside
from belfry.engine.claims import lane_of
from belfry.engine.giving import Giving
from belfry.engine.groups import Groups
from belfry.engine.held_requests import HeldRequests
from belfry.engine.intake import Intake
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.step import Step
from belfry.engine.traces import TracedIntake
from belfry.engine.unforeseen import read_whole
from belfry.schedules.rejections import Rejection
from belfry.store.layout.aside import Waits
from belfry.tenants.directory import Tenants
from belfry.wire.requests import RequestReader


class Releases:
    """Takes requests in that have waited for their group, which lies here by now."""

    def __init__(
        self,
        reader: RequestReader,
        directory: Tenants,
        admission: Admission,
        aside: Aside,
        taker: Intake | TracedIntake,
    ) -> None:
        self._reader = reader
        self._directory = directory
        self._admission = admission
        self._aside = aside
        self._taker = taker

    def take(self, waits: Waits, step: Step) -> None:
        """Take one in, or let it wait for its schema, which a new owner may not know yet."""
        record = waits.record
        lane = lane_of(record, self._directory)
        if not isinstance(lane, Rejection):
            unknown = self._reader.unknown_schema(record) is not None
            if unknown or any(each.lane == lane for each in self._aside.heads()):
                self._aside.keep([waits._replace(lane=lane)])
                return
        self._admission.appended = waits.appended
        self._taker.take(record, read_whole(self._reader, record, step), step)


class GroupMoves:
    """Goes on with the moves of one partition."""

    def __init__(
        self,
        groups: Groups,
        giving: Giving,
        held: HeldRequests,
        aside: Aside,
        jobs: KeptJobs,
    ) -> None:
        self._groups = groups
        self._giving = giving
        self._held = held
        self._aside = aside
        self._jobs = jobs

    @property
    def under_way(self) -> bool:
        """Whether there is something to do."""
        return self._giving.under_way or self._held.under_way

    def advance(self, step: Step, releases: Releases) -> None:
        """Give the next slices away, and let the next requests go on."""
        if self._giving.under_way:
            self._giving.advance(step, self._aside, self._jobs)
        if self._held.under_way:
            self._groups.releasing = True
            try:
                for waits in self._held.ready(step):
                    releases.take(waits, step)
            finally:
                self._groups.releasing = False
