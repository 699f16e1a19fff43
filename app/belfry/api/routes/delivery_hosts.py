"""Hosts of webhooks whose circuit breakers are open, and those that people have broken.

    GET  /v1/delivery-hosts                            facts of each worker that posts to them
    POST /v1/delivery-hosts/hooks.example:8443/break   nothing is posted there for `minutes`
    POST /v1/delivery-hosts/hooks.example:8443/close   the next post goes out at once

A break is written down before it is answered (`workers/shared_breaks.py`), and the other workers
are asked to look.  Processes that deliver alone (`--role deliver`) look by themselves, every two
seconds, and so does one that is started later.  A close without a break is written down if there is
room for it: else only the asked workers try the host.

Circuit breakers are each process's own, so the worker that is asked asks the others, as for
`/v1/cluster`. A process that delivers alone is no member of the group, so it is not asked: its own
`/v1/delivery-hosts` and `/healthz/ready` name its silent hosts.

Tenants share hosts, so all of it is for callers that are bound to all tenants (`*`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Path, Query
from pydantic import Field

from belfry.api.auth.principal import Principal, Role, forbidden
from belfry.api.json.document import problems
from belfry.api.json.host_answers import (
    DeliveryHostsAnswer,
    broken_host,
    silent_host,
)
from belfry.api.json.queries import DecodedHost, OfAllAsked, Why
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.server.threads import Threads
from belfry.api.workers.break_notes import NoRoomForBreaks
from belfry.api.workers.everyone import ask_others
from belfry.api.workers.host_breaks import HostBreak, closing
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.view import WorkerView

PATH: Final = "/v1/delivery-hosts"
MINUTE_MS: Final = 60_000
# Each waits for Kafka meanwhile.
MOST_CHANGES: Final = 4


class HostsAsked(OfAllAsked, Why):
    """Who is to answer; `reason` is for changes."""


class BreakAsked(HostsAsked):
    """For how long."""

    minutes: int = Field(30, ge=1, le=1440, description="The break ends by itself after these.")


HostName = Annotated[DecodedHost, Path(description="As the list has it: name, or name:port.")]
Look = Annotated[HostsAsked, Query()]
Breaking = Annotated[BreakAsked, Query()]


def delivery_host_routes(view: WorkerView, parts: ApiDependencies, callers: Callers) -> APIRouter:
    """Routes of hosts: one lists them, one breaks one, one closes it."""
    routes = APIRouter(prefix="/v1", tags=["kept"])
    hosts = DeliveryHosts(view, parts)

    @routes.get("/delivery-hosts", responses=problems(422, 429))
    async def listed(
        query: Look, caller: Principal = callers.who(Role.READ)
    ) -> DeliveryHostsAnswer:
        """Hosts that are not posted to: since when, why, and when they are tried again."""
        if not caller.reaches_all:
            raise forbidden(f"{caller.name} is bound to some tenants, and hosts are everybody's.")
        return await hosts.everywhere(caller, Target("GET", PATH, "alone=true"), query)

    @routes.post("/delivery-hosts/{host}/break", responses=problems(409, 422, 429, 503))
    async def open_(
        host: HostName, query: Breaking, caller: Principal = callers.who(Role.OPERATE)
    ) -> DeliveryHostsAnswer:
        """Post nothing to a host for a while: its deliveries are postponed, and grow older."""
        hosts.check(caller, query)
        if not (query.alone and await hosts.heard_of(host, closed=False)):
            hosts.break_(host, caller, query)
            await hosts.write_down()
        asked = {"minutes": query.minutes, "alone": "true"}
        return await hosts.everywhere(caller, _target(host, "break", query, asked), query)

    @routes.post("/delivery-hosts/{host}/close", responses=problems(409, 422, 429, 503))
    async def close(
        host: HostName, query: Look, caller: Principal = callers.who(Role.OPERATE)
    ) -> DeliveryHostsAnswer:
        """End a break, and try the next delivery at once; its answer closes the circuit breaker."""
        hosts.check(caller, query)
        if not (query.alone and await hosts.heard_of(host, closed=True)):
            hosts.close(host, caller)
            await hosts.write_down()
        return await hosts.everywhere(
            caller, _target(host, "close", query, {"alone": "true"}), query
        )

    return routes


class DeliveryHosts:
    """This worker's facts on hosts, and its actions on them."""

    def __init__(self, view: WorkerView, parts: ApiDependencies) -> None:
        self._view = view
        self._parts = parts
        self._threads = Threads("changes of hosts", MOST_CHANGES)

    def check(self, caller: Principal, query: HostsAsked) -> None:
        """Refuse a caller that does not operate all tenants, and any caller without Kafka."""
        note().because(query.reason)
        if not caller.is_platform:
            raise forbidden(f"{caller.name} does not operate all tenants (*), whose hosts it are.")
        _ = self._parts.shared_breaks

    async def heard_of(self, host: str, *, closed: bool) -> bool:
        """Whether Kafka has the break or the close of a host: the asking worker has written it."""
        await self.write_down()
        kept = self._parts.breaks.entries(int(self._parts.now_ms()))
        return any(each.host == host and each.closed == closed for each in kept)

    def break_(self, host: str, caller: Principal, query: BreakAsked) -> None:
        """Break a host here; raises `Problem` where too many are."""
        now_ms = int(self._parts.now_ms())
        until_ms = now_ms + query.minutes * MINUTE_MS
        given = HostBreak(host, now_ms, until_ms, caller.name, query.reason)
        if not self._parts.shared_breaks.make_room(given) or not self._parts.breaks.open(given):
            number = len(self._parts.breaks.all(now_ms))
            closed = len(self._parts.breaks.entries(now_ms)) - number
            detail = (
                f"{number} hosts are broken and {closed} were closed lately, and there is no room"
                " for more: close some, and try again after a minute."
            )
            raise Problem(HTTPStatus.CONFLICT, detail, "too_many_breaks")

    def close(self, host: str, caller: Principal) -> None:
        """End a break here, and have the host tried."""
        now_ms = int(self._parts.now_ms())
        fits = self._parts.shared_breaks.make_room(closing(host, now_ms, caller.name))
        self._parts.breaks.close(host, now_ms, caller.name, kept_always=fits)

    async def write_down(self) -> None:
        """Write it to Kafka, and read others' notes there; raises `Problem` for a failure.

        The break or close holds on this worker all the same, which writes it as soon as it can.
        Others may have taken the room meanwhile: that is no fault of Kafka's.
        """
        shared = self._parts.shared_breaks
        try:
            await self._threads.run(shared.settle)
        except NoRoomForBreaks as error:
            detail = f"{error}: close some. Until then it holds on this worker alone."
            raise Problem(HTTPStatus.CONFLICT, detail, "too_many_breaks") from None
        except ConnectionError as error:
            detail = (
                f"Kafka has not taken it ({error}). It holds on this worker, which writes it down"
                " as soon as Kafka answers; other processes may not know of it yet. Try again."
            )
            unavailable = HTTPStatus.SERVICE_UNAVAILABLE
            raise Problem(unavailable, detail, "not_written", RETRY_SOON) from None

    async def everywhere(
        self, caller: Principal, target: Target, query: HostsAsked
    ) -> DeliveryHostsAnswer:
        """The answers of this worker and of the others, or of this one if it is asked alone."""
        mine, view, parts = self._own(), self._view, self._parts
        if query.alone:
            return mine
        asked = caller, target, DeliveryHostsAnswer
        at_once = query.at_once and target.method == "GET"
        others = await ask_others(view, parts, *asked, at_once=at_once)
        found = [mine, *others.told.values()]
        # Breaks are everybody's, so those of the worker that is asked are all.
        hosts = [h for each in found for h in each.hosts if each is mine or h.state == "silent"]
        return DeliveryHostsAnswer(
            hosts=sorted(hosts, key=lambda host: (host.host, host.worker_id)),
            workers=[name for each in found for name in each.workers],
            silent=others.silent,
            remembered=others.remembered,
        )

    def _own(self) -> DeliveryHostsAnswer:
        name, now_ms = self._view.identity.worker_id, int(self._parts.now_ms())
        posting = self._view.posting()
        broken = [broken_host(name, each) for each in self._parts.breaks.all(now_ms)]
        if not posting.posts:
            return DeliveryHostsAnswer(hosts=broken, workers=[])
        names = {each.host for each in broken}
        silent = [
            silent_host(name, each, now_ms)
            for each in posting.silent_hosts
            if each.host not in names
        ]
        return DeliveryHostsAnswer(hosts=[*broken, *silent], workers=[name])


def _target(host: str, action: str, query: HostsAsked, asked: dict[str, object]) -> Target:
    """The same question to another worker."""
    why = {} if query.reason is None else {"reason": query.reason}
    return Target("POST", f"{PATH}/{quote(host, safe='')}/{action}", urlencode(asked | why))
