"""Reads go to the worker that holds the partition, whichever worker was asked.

    held here? ─ yes ─► read the store
        │ no
        └─► who holds it, says the group ─► ask that worker ─ "not me" ─► look again, for a second
                                                                 └─► 503, Retry-After

No read is stale: it shows every change that was acknowledged to any caller before the question.
Before the rows are read, a transaction that is about to end has to have reached the store;
afterwards the holder has to prove that no other worker had taken the partition over
(`engine/read_lease.py`). The highest offset that was answered for here travels along as well, and
the holder waits until it has that.

A tenant's key group may lie elsewhere than at its home. Its home is asked first, and says where:

    look at the home ─► its row: the group lies at 2 ─► ask partition 2, as handed on

A client writes to W1 and reads from W1; the partition moves in between:

    12:00:00.000  PUT: written at offset 70, and answered by W1 with its verdict
    12:00:00.010  the partition goes from W1 to W2
    12:00:00.020  GET at W1: not held here; the group still names W1 itself, so nobody is asked
    12:00:00.070  look again: the group names W2; asked with belfry-after: 70
    12:00:00.090  W2 has taken in up to 75, reads, and proves by its lease that it is the owner
    12:00:00.092  W1 passes the answer on: it shows what the PUT did
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.internal_token import FORWARDED, Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import (
    AFTER,
    AT,
    LIES_AT,
    PASSED_ON,
    PeerUnreachable,
    is_misdirected,
    number_in,
    number_told,
)
from belfry.api.workers.places import LiesElsewhere, ReadPlace, moving, not_held
from belfry.engine.read_lease import ReadLease
from belfry.store.lookup import Moving
from belfry.store.ordered_map import OrderedMap

# Seconds until a caller is told that the partition is on its way.
TIMEOUT_S: Final = 1.0
# Seconds between two looks for the holder, and for the store of a holder.
PAUSE_S: Final = 0.05
LOOK_S: Final = 0.001
# Parameters that a worker of the release before may refuse; it answers without those fields.
LATER: Final = frozenset({"last"})
# Why a read was not proved valid in time.
_UNPROVEN: Final = (
    "its owner cannot show that it still is: it or the brokers are slow, or do not answer"
)
T = TypeVar("T")
Look = Callable[[OrderedMap], T]


class Reads:
    """Finds the holder of a partition and lets it answer; belongs to one event loop.

    It remembers the highest offset that was answered for in each partition since the process began.
    """

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts
        self._written: dict[int, int] = {}

    def wrote(self, partition: int | None, offset: int | None) -> None:
        """A write that lies there was answered for: later reads have to see it."""
        if partition is not None and offset is not None:
            self._written[partition] = max(offset, self._written.get(partition, -1))

    async def answer(
        self,
        request: Request,
        principal: Principal,
        partition: int,
        look: Callable[[int], Awaitable[Response]],
        tenant: str | None = None,
    ) -> Response:
        """The answer of the worker that holds a partition; `look` reads it here, raising `NotHeld`.

        A schedule of a `tenant` may lie in another partition, which is looked into then.
        """
        deadline = monotonic() + TIMEOUT_S
        lies_at = number_told(request, LIES_AT)
        handed_on = lies_at is not None
        partition = partition if lies_at is None else lies_at
        home = place = ReadPlace(partition, self._after(request, partition), tenant, handed_on)
        why = ""
        while True:
            try:
                return await self._here(place, look, deadline)
            except NotHeld:
                if FORWARDED in request.headers:
                    return not_held(request, place.partition)
                elsewhere = await self._elsewhere(request, principal, place)
                if isinstance(elsewhere, Response):
                    return elsewhere
                if isinstance(elsewhere, int):
                    place = self._handed_on(request, place, elsewhere)
                else:
                    place, why = home, elsewhere
            except LiesElsewhere as error:
                if FORWARDED in request.headers:
                    return not_held(request, place.partition, error.partition)
                place = self._handed_on(request, place, error.partition)
            except Moving as error:
                place, why = home, str(error)
            if monotonic() > deadline:
                raise moving(place.partition, why)
            await asyncio.sleep(PAUSE_S if why else 0)

    def _handed_on(self, request: Request, place: ReadPlace, partition: int) -> ReadPlace:
        """The place that is asked instead of one from which the tenant's group has moved."""
        return place._replace(
            partition=partition, after=self._after(request, partition), handed_on=True
        )

    def homes(self, request: Request, tenant: str, schedule_id: str) -> list[int]:
        """Where a schedule may live, the likeliest first; one place, where another worker asks."""
        told = number_told(request, AT)
        if told is not None:
            return [told]
        holdings = self._parts.ready.holdings
        home = holdings.home_of(tenant, schedule_id)
        return [home, *holdings.former_homes_of(tenant, schedule_id)]

    def read(self, partition: int, look: Look[T]) -> T:
        """The finds of `look` in a partition that is held here; raises `NotHeld`."""
        return self._parts.ready.holdings.read(partition, look)

    def _after(self, request: Request, partition: int) -> int:
        """The offset that the answer has to show: told by another worker, or remembered here."""
        told = number_told(request, AFTER)
        return self._written.get(partition, -1) if told is None else told

    async def _here(
        self, place: ReadPlace, look: Callable[[int], Awaitable[Response]], deadline: float
    ) -> Response:
        """This worker's answer, once it is known to be the truth.

        Raises `NotHeld`, and `LiesElsewhere` where the tenant's group does not lie here.
        """
        partition, after, tenant, handed_on = place
        holdings = self._parts.ready.holdings
        lease = holdings.lease(partition)
        await self._applied(partition, lease, after, deadline)
        answer = await look(partition)
        if tenant is not None:
            lies_at = holdings.lies_at(partition, tenant, handed_on=handed_on)
            if lies_at is None:
                raise Moving(f"the key group of {tenant} is on its way")
            if lies_at != partition:
                raise LiesElsewhere(lies_at)
        await self._proven(partition, lease, deadline)
        return answer

    async def _applied(self, partition: int, lease: ReadLease, after: int, deadline: float) -> None:
        """Wait until the store shows all visible changes, and the request at this offset."""
        holdings = self._parts.ready.holdings
        while not lease.settled or holdings.position(partition) <= after:
            if monotonic() > deadline:
                what = f"the request at offset {after}" if lease.settled else "the last commit"
                raise moving(partition, f"{what} is not applied yet")
            await asyncio.sleep(LOOK_S)

    async def _proven(self, partition: int, lease: ReadLease, deadline: float) -> None:
        """Wait until the read is proved valid."""
        holdings, read_ms = self._parts.ready.holdings, monotonic() * 1000
        while not holdings.proven(partition, lease, read_ms):
            if monotonic() > deadline:
                raise moving(partition, _UNPROVEN)
            await asyncio.sleep(LOOK_S)

    async def _elsewhere(
        self, request: Request, principal: Principal, place: ReadPlace
    ) -> Response | int | str:
        """The answer of the holder, or of a standby that took over; else why there is none.

        A number is the partition that is to be asked instead.
        """
        directory, partition = self._parts.ready.directory, place.partition
        told = [directory.holder(partition), *directory.standbys(partition)]
        urls = [url for url in dict.fromkeys(told) if url is not None and url != directory.mine]
        why = "the group has not said who holds it"
        for url in urls:
            if not self._parts.internal_token.can_travel:
                return f"{url} holds it, and without BELFRY_HTTP_WORKER_SECRET it trusts nobody"
            answer = await self._asked(url, request, principal, place)
            if not isinstance(answer, str):
                return answer
            why = answer
        return why

    async def _asked(
        self, url: str, request: Request, principal: Principal, place: ReadPlace
    ) -> Response | int | str:
        """Another worker's answer, which partition it says is to be asked, or why there is none."""
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers[AT] = str(place.partition)
        if place.after >= 0:
            headers[AFTER] = str(place.after)
        if place.handed_on:
            headers[LIES_AT] = str(place.partition)
        try:
            target = await Target.of(request)
            answer = await self._parts.peers.ask(url, target, principal, headers)
            known = target.without(LATER)
            if answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY and known != target:
                answer = await self._parts.peers.ask(url, known, principal, headers)
        except PeerUnreachable as error:
            return str(error)
        if not is_misdirected(answer):
            return answer
        lies_at = answer.headers.get(LIES_AT)
        return (
            f"{url} does not hold it any more" if lies_at is None else number_in(LIES_AT, lies_at)
        )
