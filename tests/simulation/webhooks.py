"""Webhooks: hosts that take posts, refuse them, say nothing, or take them and are not heard.

    well      204
    refuses   503
    busy      429, and asks to wait for two seconds
    gone      410: another attempt would change nothing
    silent    no answer within the time-out; half of the posts were taken all the same
    unheard   taken, and the connection breaks before the answer
    late      204 after up to three seconds, which is beyond some time-outs

What posts is shipped: the loop of coroutines, their order, the breaker of each host.  A post that
has left arrives whatever becomes of its process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

from belfry.delivery.answers import Answer, End, answered
from belfry.delivery.http_requests import Post
from tests.simulation.direct import StageLoop
from tests.simulation.machine import Machine
from tests.simulation.stage import Crashed, Stage, Task, here
from tests.simulation.tenant_policies import TenantPolicies

HOSTS: Final = ("a.example", "b.example:8443", "c.example")
STATUS: Final = {"well": 204, "unheard": 204, "late": 204, "silent": 204}
STATUSES: Final = {**STATUS, "refuses": 503, "busy": 429, "gone": 410}
FAULTS: Final = (
    *("refuses", "refuses", "busy", "gone", "silent", "silent", "unheard", "unheard", "late"),
)
LASTS_MS: Final = (700.0, 3_000.0, 8_000.0)
LATE_MS: Final = 3_000.0
BUSY_S: Final = "2"
# What a post to a machine without a network comes to.
UNREACHED: Final = "no way to the host"


@dataclass(eq=False, slots=True)
class Posted:
    """One post: when it left (stage's ms), what it said, and what it came to."""

    machine: Machine
    url: str
    headers: dict[str, str]
    body: bytes
    began_ms: float
    arrived_ms: float = -1.0
    status: int = 0
    ended_ms: float = -1.0
    heard: bool = False

    @property
    def taken(self) -> bool:
        """Whether the target has the event now."""
        return 200 <= self.status < 300

    @property
    def delivery(self) -> tuple[str, str]:
        """Fire and address: what one delivery is about."""
        return self.headers["webhook-id"], self.url

    @property
    def attempt(self) -> int:
        """Its number, as the post says it."""
        return int(self.headers["belfry-attempt"])


@dataclass(slots=True)
class Host:
    """How one host behaves until an instant."""

    mode: str = "well"
    until_ms: float = 0.0


@dataclass(slots=True)
class Hooks:
    """All hosts of a world, and all posts that were made."""

    stage: Stage
    random: Random
    hosts: dict[str, Host] = field(default_factory=lambda: {name: Host() for name in HOSTS})
    posts: list[Posted] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    # Which process was given which partitions of the topic of deliveries, and when.
    given: list[tuple[Machine, list[int], float]] = field(default_factory=list)
    # What is added to a tenant's policy, such as topics as targets (`topic_targets`).
    adds: Callable[[Hooks, dict[str, Any]], dict[str, Any]] | None = None

    def assigned_ms(self, machine: Machine, partition: int, before_ms: float) -> float:
        """When a process was last given a partition before an instant; -1 for never."""
        found = [ms for who, several, ms in self.given if who is machine and partition in several]
        return max((ms for ms in found if ms <= before_ms), default=-1.0)

    def give(self, policies: TenantPolicies, tenants: tuple[str, ...]) -> None:
        """Most tenants have targets from the beginning on."""
        for tenant in tenants:
            if self.random.random() < 0.8:
                said = self._drawn(tenant)
                policies.also(tenant, **(said if self.adds is None else self.adds(self, said)))

    def _drawn(self, tenant: str) -> dict[str, Any]:
        strategy = self.random.choice(("ALL", "ALL", "FIRST_AVAILABLE", "ROUND_ROBIN"))
        hosts = self.random.sample(HOSTS, self.random.choice((1, 1, 2, 3)))
        targets = [
            {
                "url": f"https://{host}/{tenant}",
                "timeout_ms": self.random.choice((500, 1_500, 4_000)),
                "strategy": strategy,
            }
            for host in hosts
        ]
        return {
            "http_targets": targets,
            "retry_max_attempts": self.random.choice((1, 2, 4, 8)),
            "retry_initial_ms": self.random.choice((100, 400, 1_000)),
            "retry_max_ms": self.random.choice((400, 3_000)),
            "retry_max_age_ms": self.random.choice((None, None, 12_000)),
        }

    def strike(self) -> None:
        """A host fails in some way for a while."""
        host = self.hosts[self.random.choice(HOSTS)]
        host.mode = self.random.choice(FAULTS)
        host.until_ms = self.stage.now_ms + self.random.choice(LASTS_MS)

    def heal(self) -> None:
        """All hosts take what comes."""
        for host in self.hosts.values():
            host.until_ms = 0.0

    def arrive(self, posted: Posted) -> str:
        """A post is at its host: how that behaves."""
        host = self.hosts[urlsplit(posted.url).netloc]
        mode = host.mode if self.stage.now_ms < host.until_ms else "well"
        posted.arrived_ms = self.stage.now_ms
        if mode != "silent" or self.random.random() < 0.5:
            posted.status = STATUSES[mode]
        if mode != "well":
            self.struck.append(f"target {mode}")
        return mode


class Wire:
    """`Transport`: the way from one machine to all hosts."""

    def __init__(self, machine: Machine, hooks: Hooks) -> None:
        self._machine, self._hooks = machine, hooks

    async def post(self, post: Post) -> Answer:
        """Send it and say what came of it."""
        here().check()
        posted = Posted(self._machine, post.url, dict(post.headers), post.body, here().now_ms)
        self._hooks.posts.append(posted)
        try:
            answer = await self._within(posted, post)
            posted.heard = answer.heard
        finally:
            # It may have been given up.
            posted.ended_ms = here().now_ms
        return answer

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _within(self, posted: Posted, post: Post) -> Answer:
        try:
            async with asyncio.timeout(post.timeout_ms / 1000):
                mode = await self._there_and_back(posted)
        except TimeoutError:
            reason = f"no answer within {post.timeout_ms} ms"
            return Answer(End.AGAIN, post.url, "timeout", reason, heard=False)
        if mode == "unheard":
            return Answer(End.AGAIN, post.url, "connection", "it broke", heard=False)
        after = BUSY_S if mode == "busy" else None
        return answered(STATUSES[mode], after, post.url, int(self._machine.wall_ms()))

    async def _there_and_back(self, posted: Posted) -> str:
        """How the host behaves, once its answer is here; never, where it says nothing."""
        loop, machine = asyncio.get_running_loop(), self._machine
        heard: asyncio.Future[str] = loop.create_future()
        stage, weather = self._hooks.stage, machine.weather

        def back(mode: str) -> None:
            # Nobody may be there any more.
            with suppress(RuntimeError):
                if not (machine.cut or machine.dead):
                    loop.call_soon_threadsafe(partial(_set, heard, mode))

        def arrive() -> None:
            mode = self._hooks.arrive(posted)
            if mode != "silent":
                late_ms = self._hooks.random.random() * LATE_MS if mode == "late" else 0.0
                stage.later(late_ms + weather.latency_ms(), lambda: back(mode))

        if not machine.cut:
            stage.later(weather.latency_ms(), arrive)
        return await heard


def _set(future: asyncio.Future[str], mode: str) -> None:
    if not future.done():
        future.set_result(mode)


class _Selector:
    """Where a loop waits for its next timer, or for who has something for it."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._woken = False

    def wake(self) -> None:
        """Something is there to be done."""
        self._woken = True
        if self._task is not None:
            here().wake(self._task)

    def select(self, timeout_s: float | None) -> list[Any]:
        stage = here()
        stage.check()
        if not self._woken and timeout_s != 0:
            self._task = stage.current
            stage.wait(None if timeout_s is None else timeout_s * 1000)
            self._task = None
        self._woken = False
        return []


class HookLoop(StageLoop):
    """The loop of a thread that posts, which other threads hand work to."""

    def __init__(self) -> None:
        super().__init__()
        self._selector: Any = _Selector()

    def _write_to_self(self) -> None:
        self._selector.wake()

    def run_forever(self) -> None:
        """Run; in a process that was killed, what is under way ends where it is."""
        try:
            super().run_forever()
        except Crashed:
            for task in asyncio.all_tasks(self):
                left: Any = task.get_coro()
                left.close()
            raise

    def run_until_complete(self, future: Any) -> Any:
        """Nothing runs to its end in a process that was killed."""
        if here().current.host.dead:
            future.close()
            raise Crashed
        return super().run_until_complete(future)


def wire(machine: Machine, hooks: Hooks) -> Callable[[], Wire]:
    """What makes the way of one process."""
    return partial(Wire, machine, hooks)
