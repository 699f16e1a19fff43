"""One attempt: the targets of a delivery in turn, each allowed, with room at its host, and signed.

    allowed by the policy, and its secrets may be shown there     else  FINAL      nothing is sent
    room at the host: so many posts at once                       else  it waits
    the host has no break (`host_breaks.py`)                      else  POSTPONED  nothing is sent
    the host answers these days (`hosts.py`)                      else  POSTPONED  nothing is sent
    its secret is known, and signs the post                       else  AGAIN
    posted (`transport.py`)                                             the answer of the host

A delivery's strategy says which targets are tried, and in which order; the first one that takes it
ends the attempt. A host is told apart by name and port, for the targets of all tenants together, so
a host that hangs holds up only the deliveries to itself, of all tenants.

All of it runs in the sender's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from belfry.api.workers.host_breaks import HostBreak, HostBreaks
from belfry.delivery.answers import HOST_BROKEN, Answer, End, Sent, best
from belfry.delivery.hosts import Hosts
from belfry.delivery.http_requests import NoSecret, Secrets, post_of
from belfry.delivery.references import NOWHERE, References
from belfry.delivery.transport import Transport
from belfry.delivery.work import Work
from belfry.host.clock import SystemClock
from belfry.schedules.header_secrets import reach_problem
from belfry.schedules.target_kinds import is_allowed, place_of
from belfry.schedules.targets import HttpTarget
from belfry.telemetry.tracing import Tracing

# How long a delivery to a broken host waits: so long after the break's end the last one goes out.
BROKEN_STEP_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class SenderDependencies:
    """Parts of a sender; `transport` is made inside the loop, `tracing` is for its dispatcher."""

    transport: Callable[[], Transport]
    secrets: Secrets
    clock: SystemClock
    per_host: int
    references: References = NOWHERE
    tracing: Tracing | None = None
    breaks: HostBreaks = field(default_factory=HostBreaks)


class Attempts:
    """Makes attempts over one transport; it remembers hosts for its own lifetime."""

    def __init__(self, means: SenderDependencies) -> None:
        """The transport is made here, so it belongs to the loop that runs."""
        self._means = means
        self._clock = means.clock
        self._transport = means.transport()
        self._hosts = Hosts()
        self._room: dict[str, asyncio.Semaphore] = {}

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def answer(self, work: Work) -> Answer:
        """One attempt: the first target that takes it counts.

        The delivery's strategy says which targets are tried, and in which order.
        """
        answers: list[Answer] = []
        for target in work.state.order(work.event.schedule_id, work.event.occurrence):
            answers.append(await self._at(work, target))
            if answers[-1].end is End.DELIVERED:
                break
        sent = tuple(each for answer in answers for each in answer.sent)
        return replace(best(answers), sent=sent)

    async def _at(self, work: Work, target: HttpTarget) -> Answer:
        """The answer of one target, once its host has room and the tenant's policy lets it be
        used.
        """
        if not is_allowed(target, work.state.hosts):
            reason = f"host {place_of(target)!r} is not among those that the tenant's policy allows"
            return Answer(End.FINAL, target.url, "target_not_allowed", reason)
        why = reach_problem(target.headers, work.state.refs, work.state.hosts)
        if why is not None:
            return Answer(End.FINAL, target.url, "target_not_allowed", why)
        name = urlsplit(target.url).netloc.lower()
        room = self._room.get(name)
        if room is None:
            room = self._room[name] = asyncio.Semaphore(self._means.per_host)
        try:
            async with room:
                return await self._send(work, target, name)
        finally:
            if not room.locked() and self._hosts.of(name, self._now_ms()).under_way == 0:
                self._room.pop(name, None)

    async def _send(self, work: Work, target: HttpTarget, name: str) -> Answer:
        """Sign, post, and note whether the host has answered."""
        now_ms = self._now_ms()
        host = self._hosts.of(name, now_ms)
        broken = self._means.breaks.standing(name, now_ms)
        if broken is not None:
            return _postponed(target, name, broken, now_ms)
        if self._means.breaks.is_tried(name):
            host.try_now()
        closed_until_ms = host.closed_until_ms(now_ms)
        if closed_until_ms:
            reason = f"{name} did not answer {host.failures} times in a row"
            return Answer(End.POSTPONED, target.url, "host_silent", reason, closed_until_ms)
        try:
            means = self._means
            post = post_of(work, target, means.secrets, now_ms, means.references.value)
        except NoSecret as error:
            return Answer(End.AGAIN, target.url, "no_secret", str(error))
        host.begin(now_ms)
        heard, began_ms = True, self._clock.wall_ms()
        try:
            answer = await self._transport.post(post)
            heard = answer.heard
        finally:
            ended_ms = self._clock.wall_ms()
            host.end(int(ended_ms), heard=heard)
        sent = Sent(target.url, began_ms, ended_ms, answer.end, answer.status, answer.code)
        return replace(answer, sent=(sent,))

    def _now_ms(self) -> int:
        return int(self._clock.wall_ms())


def _postponed(target: HttpTarget, name: str, broken: HostBreak, now_ms: int) -> Answer:
    """The answer for a delivery to a broken host; the delivery is tried again after a while."""
    why = f": {broken.reason}" if broken.reason else ""
    until_ms = min(broken.until_ms, now_ms + BROKEN_STEP_MS)
    reason = f"{broken.by} has broken {name}{why}"
    return Answer(End.POSTPONED, target.url, HOST_BROKEN, reason, until_ms)
