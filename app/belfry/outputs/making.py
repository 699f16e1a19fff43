"""The thread that makes output topics, and the reasons that tenants are told meanwhile.

    a step    want: fired.new is not there ─► in the queue, "its topic is being made" ─► goes on
    thread    every 0.1 s: the topics whose turn it is, in one request ─► release their tenants

No step waits for a topic. A tenant gets no topic if belfry creates none, if another tenant has the
name first, if the topic was refused a moment ago, or if unknown tenants have as many topics as they
may have; then the tenant is told why.

As soon as a topic is in the queue, no other tenant can have a name that collides with it. If two
workers ask for such names at once, the brokers refuse one of them; that worker then looks at the
topics again, and its tenant is held with the brokers' reason. `topic_queue` bounds the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import structlog

from belfry.host import machine
from belfry.host.background import Background
from belfry.outputs.holding import Holds
from belfry.outputs.output_state import FIRST_PAUSE_S
from belfry.outputs.topic_queue import CROWDED_OUT, TO_MAKE, TopicQueue, make_topics
from belfry.outputs.topic_view import TopicView
from belfry.settings import Settings
from belfry.tenants.directory import Tenants

WAIT_S: Final = 5.0
MAKE_S: Final = 0.1

log = structlog.get_logger(__name__)


class TopicMaker:
    """Has topics made, and makes them in a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        holds: Holds,
        view: TopicView,
        queue: TopicQueue,
        queued: Callable[[int], None],
    ) -> None:
        """`queued` hears how many topics are yet to be made, from the thread."""
        self._settings = settings
        self._tenants = tenants
        self._holds = holds
        self._view = view
        self._queue = queue
        self._queued = queued
        self._wanted = machine.Event()
        # From when on names that may collide lead to a look again; seconds of the monotonic clock.
        self._look_at = 0.0
        self._thread = Background("topics", self._make, log, "output topics not made")

    def start(self) -> None:
        """Begin to make topics."""
        self._thread.start()

    def end(self) -> None:
        """Make no more; does not wait for topics that are being made."""
        self._thread.stopping.set()
        self._wanted.set()

    def stop(self) -> None:
        """Make no more, and wait until the thread has ended."""
        self.end()
        self._thread.stop()

    def makes(self, topic: str) -> bool:
        """Whether a topic is being made."""
        return topic in self._queue

    def want(self, absent: dict[str, str]) -> dict[str, str]:
        """Have topics (by tenant) made; returns why each tenant has to wait."""
        if not self._settings.create_topics:
            return dict.fromkeys(absent, "its topic is missing, and belfry creates none")
        if (
            any("." in name or "_" in name for name in absent)
            and machine.monotonic() >= self._look_at
        ):
            # Another worker may just have made a topic whose name collides with one of these.
            self._look_at = machine.monotonic() + FIRST_PAUSE_S
            self._view.look(machine.monotonic())
        reasons = {name: self._want_one(name, topic) for name, topic in sorted(absent.items())}
        if len(self._queue):
            self._wanted.set()
        return reasons

    def _want_one(self, name: str, topic: str) -> str:
        if topic in self._queue:
            return TO_MAKE
        tenant = self._tenants.of(name)
        if tenant.held not in ("", CROWDED_OUT) and self._holds.state.pauses(
            name, machine.monotonic()
        ):
            return tenant.held
        if tenant.collides_with is not None:
            return f"its topic collides with that of {tenant.collides_with}"
        known = self._tenants.topics.has_policy(tenant)
        if not known and self._tenants.topics.is_full():
            return CROWDED_OUT
        self._queue.add(topic, known=known)
        # From now on no other tenant can have a name that collides with it.
        self._tenants.note_topics([topic])
        return TO_MAKE

    def told_before(self, topics: Mapping[str, str], problems: Mapping[str, str]) -> list[str]:
        """Tenants that were held for a topic after it was made: no thread releases them any more.

        `topics` and `problems` are by tenant.  A partition's thread may take so long from `want` to
        the hold that the thread which makes topics is done in between. A tenant that pauses is
        tried again when its pause is over.
        """
        now_s = machine.monotonic()
        return [
            name
            for name, problem in problems.items()
            if problem == TO_MAKE and topics[name] not in self._queue
            if not self._holds.state.pauses(name, now_s)
        ]

    def _make(self) -> None:
        self._wanted.wait(WAIT_S)
        try:
            self.make_some()
        finally:
            self._queued(len(self._queue))
        if not len(self._queue):
            self._wanted.clear()
        self._thread.stopping.wait(MAKE_S)

    def make_some(self) -> None:
        """Make the topics whose turn it is, and release the tenants that waited for them.

        A topic that could not be made keeps its tenant held, with the broker's reason, and is tried
        again after its pause.
        """
        topics = self._queue.next(machine.monotonic())
        if not topics:
            return
        made, problems = make_topics(self._view.admin, self._settings, topics)
        self._view.made(made)
        for topic in topics:
            self._queue.done(topic)
        self._view.not_made(problems)
        try:
            self._view.describe([topic for topic in topics if topic not in problems])
        finally:
            self._tell(topics, problems)
        if problems:
            # Perhaps another worker made a topic whose name collides with it.
            self._view.look(machine.monotonic())

    def _tell(self, topics: Collection[str], problems: Mapping[str, str]) -> None:
        """Release the tenants of these topics, or hold them with the problem.

        The topics are not in the queue any more: no thread would release a tenant that is left out.
        """
        waited = [tenant for topic in topics for tenant in self._tenants.on(topic)]
        self._holds.settle(
            {tenant.name: tenant.topic for tenant in waited},
            {each.name: problems[each.topic] for each in waited if each.topic in problems},
        )
