"""Output topics: there before their tenant's first event is, and tenants held whose is not.

A record that cannot be produced would roll back the whole step, with everybody else's events in it.
So topics are made when a tenant's first schedule is accepted, are checked before a step produces,
and a tenant whose topic is missing or refused is *held*: its events wait in the backlog, with a
reason, and are tried again with a growing pause.

    first schedule ─► held, its topic in the queue ─► a thread of its own makes some ─► let go

No partition waits while a topic is made, and nobody makes many at once (`topic_queue.py`).

What a step meets, and what becomes of it:

    all topics open                     it is produced
    a topic that was not looked at      looked at now (a request to the broker), then produced
    a topic that is missing             Aborted: the step is rolled back, its tenant is held, and
                                        the next step leaves this tenant's events in the backlog
    the transaction fails on a topic    the same, by `hold`: only the broker knew

So a tenant with a broken topic costs the others one rolled-back step, and then a look each minute.

Three sorts of threads meet here: partitions' threads (`prepare`, `hold`), the thread of policies
(`apply`), and the two of this module, which look at topics and make them.  What is known of topics
is replaced as a whole, so readers need no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Event, Lock
from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka.admin import AdminClient

from belfry.engine.effects import Effects
from belfry.host.background import Background
from belfry.kafka.outcome import Aborted, TopicGone
from belfry.outputs.envelopes import Envelopes, is_framed
from belfry.outputs.output_state import FIRST_PAUSE_S, OutputState
from belfry.outputs.topic_queue import (
    ADMIN_S,
    CROWDED_OUT,
    TO_MAKE,
    TopicQueue,
    largest_records,
    make_topics,
    not_writable,
)
from belfry.registry.client import Registry
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Tenant, TenantFacts

LOOK_S: Final = 5.0
OFFLINE: Final = "a partition of its topic has no leader"
BLOCKED: Final = "belfry may not write to its topic: allow it the operation WRITE"
MAKE_S: Final = 0.1

log = structlog.get_logger(__name__)


class Outputs:
    """Knows which tenants' topics can be written to; used by all partitions' threads."""

    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        registry: Registry | None,
        watcher: Callable[[Mapping[str, Any]], None] | None = None,
        queued: Callable[[int], None] | None = None,
    ) -> None:
        """`watcher` hears of all topics that there are, `queued` how many are yet to be made.

        Both may be called from any thread, and have to return soon.
        """
        self._settings = settings
        self._tenants = tenants
        self._envelopes = Envelopes(settings, registry)
        self._admin = AdminClient(settings.kafka_properties())
        self._prefix = settings.topic("fired.")
        self._partitions: dict[str, int] = {}
        self._leaderless: set[str] = set()
        self._noted: set[str] = set()
        self._state = OutputState()
        self._lock = Lock()
        self._queue = TopicQueue(settings.new_topics_per_second)
        self._wanted = Event()
        self._look_at = 0.0
        self._looked = 0.0
        self._thread = Background(
            "outputs", self._look_now_and_then, log, "output topics not looked at"
        )
        self._maker = Background("topics", self._make, log, "output topics not made")
        self._queued = queued or (lambda _topics: None)
        self._watcher = watcher or (lambda _topics: None)

    def start(self) -> None:
        """Look at the topics that exist, and go on looking; waits for the first look.

        Raises KafkaException where the brokers do not answer.
        """
        self._look()
        self._looked = monotonic()
        self._thread.start()
        self._maker.start()

    def stop(self) -> None:
        """Stop looking."""
        self._maker.stopping.set()
        self._wanted.set()
        self._thread.stop()
        self._maker.stop()

    @property
    def topics(self) -> int:
        """Number of output topics that there are."""
        return len(self._partitions)

    def partitions_of(self, topic: str) -> int:
        """Number of partitions of an output topic; TopicGone if it was deleted meanwhile."""
        try:
            return self._partitions[topic]
        except KeyError:
            raise TopicGone(topic) from None

    def prepare(self, effects: Effects) -> None:
        """Make sure of the topics of a step's tenants; Aborted if it fires to one that is not.

        `effects.tenants` are those for whom a schedule is kept in this step: their topics are made
        long before the first of these is due.
        """
        if effects.unframed:
            self._state.unready(effects.unframed)
            self._make_ready(effects.unframed)
            raise Aborted("the schema id of an envelope was not known yet", {})
        topics = {fired[0] for fired in effects.fired}
        if self._state.covers(topics, effects.tenants):
            return
        closed = self._state.closed(topics)
        names = {tenant.name for topic in closed for tenant in self._tenants.on(topic)}
        self._make_ready(names | effects.tenants)
        self._refuse_unfit(effects.tenants)
        firing = [tenant for topic in closed for tenant in self._tenants.on(topic)]
        held = [tenant for tenant in firing if tenant.held]
        refused = {each.topic: TO_MAKE if each.held == TO_MAKE else "not there" for each in held}
        refused |= self._tenants.names.reserved((each.name, each.topic) for each in firing)
        if refused:
            raise Aborted("output topics cannot be written to", refused)
        self._state.open(tenant.topic for tenant in firing)

    def _refuse_unfit(self, names: Iterable[str]) -> None:
        """Roll a step back that has accepted requests of a tenant which can have no topic.

        Its name collides with one that was there first, or there is no room for further topics.
        The same request is refused in the next step, by what is known now.
        """
        tenants = [self._tenants.of(name) for name in names]
        lost = {each.name: each.collides_with for each in tenants if each.collides_with}
        if lost:
            raise Aborted(f"names of tenants collide, and others had them first: {lost}", {})
        crowded_out = sum(each.crowded_out for each in tenants)
        if crowded_out:
            raise Aborted(f"there is no room for topics of {crowded_out} unknown tenants", {})

    def hold(self, topics: dict[str, str]) -> bool:
        """Hold the tenants of topics that refused a record, and of those that are offline.

        Kafka tells a producer that it may not write to some topic, but not to which one, so with no
        names given all open topics are looked at.  Returns whether there is anybody to hold.
        """
        if not topics:
            self._look()
            topics = dict.fromkeys(not_writable(self._admin, self._state.opened()), BLOCKED)
        anybody = False
        for topic, reason in topics.items():
            for tenant in self._tenants.on(topic):
                self._hold(tenant, reason)
                anybody = True
        return anybody

    def apply(self, effective: EffectivePolicy) -> None:
        """Put a tenant's policy into effect; called by the thread that follows policies.

        The head of its envelopes is there before the first of them is made, and a new topic before
        it is fired to.  May ask the registry and the broker, and waits for their answers.
        """
        before = self._tenants.of(effective.policy.tenant)
        topic, found = self._tenants.topic_of(effective), TenantFacts()
        reason = ""
        if effective.policy.delivery == Delivery.ENVELOPE and not is_framed(before, topic):
            found["envelope_head"], reason = self._envelopes.head(topic)
        if reason:
            # It is held from the very change on: nothing is made of the two that do not fit.
            found["held"] = reason
        self._state.close({topic, before.topic})
        tenant = self._tenants.follow(effective, **found)
        if reason:
            self._hold(tenant, reason)
        elif (tenant.topic, tenant.delivery) != (before.topic, before.delivery):
            self._state.unready([tenant.name])
            self._make_ready([tenant.name])

    def _make_ready(self, names: Iterable[str]) -> None:
        with self._lock:
            fresh = self._state.fresh(names)
            topics = {name: self._tenants.of(name).topic for name in fresh}
            absent = [name for name in fresh if topics[name] not in self._partitions]
            offline = [name for name in absent if topics[name] in self._leaderless]
            problems = dict.fromkeys(offline, OFFLINE)
            absent = [name for name in absent if name not in problems]
            problems |= self._want({name: topics[name] for name in absent})
            self._describe([topics[name] for name in fresh if name not in problems])
            again = [name for name in fresh if self._tenants.of(name).held]
            blocked = not_writable(
                self._admin, {topics[name] for name in again if name not in problems}
            )
            problems |= {name: BLOCKED for name in again if topics[name] in blocked}
        self._settle(topics, problems)

    def _settle(self, topics: dict[str, str], problems: dict[str, str]) -> None:
        """Let tenants go, or hold them, by the problems that were found with their topics."""
        findings: list[tuple[Tenant, TenantFacts]] = []
        for name, topic in topics.items():
            tenant = self._tenants.of(name)
            if tenant.topic != topic:
                # A policy has moved it meanwhile, and the thread of policies makes it ready there.
                continue
            reason, found = problems.get(name, ""), TenantFacts()
            enveloped = tenant.delivery is Delivery.ENVELOPE
            if not reason and enveloped and not is_framed(tenant, tenant.topic):
                if self._state.pauses(name, monotonic()):
                    # It is held, and its requests must not ask the registry with every step.
                    continue
                found["envelope_head"], reason = self._envelopes.head(tenant.topic)
            found |= self._kept_back(tenant, reason) if reason else self._let_go(tenant)
            if reason == CROWDED_OUT:
                found["crowded_out"] = True
            findings.append((tenant, found))
        self._tenants.note(findings)

    def _want(self, absent: dict[str, str]) -> dict[str, str]:
        """Have topics (by tenant) made; why each tenant has to wait."""
        if not self._settings.create_topics:
            return dict.fromkeys(absent, "its topic is missing, and belfry creates none")
        if any("." in name or "_" in name for name in absent) and monotonic() >= self._look_at:
            # Another worker may have made one a moment ago that it collides with.
            self._look_at = monotonic() + FIRST_PAUSE_S
            self._look()
        reasons = {name: self._want_one(name, topic) for name, topic in sorted(absent.items())}
        if len(self._queue):
            self._wanted.set()
        return reasons

    def _want_one(self, name: str, topic: str) -> str:
        if topic in self._queue:
            return TO_MAKE
        tenant = self._tenants.of(name)
        if tenant.held not in ("", CROWDED_OUT) and self._state.pauses(name, monotonic()):
            return tenant.held
        if tenant.collides_with is not None:
            return f"its topic collides with that of {tenant.collides_with}"
        known = self._tenants.topics.has_policy(tenant)
        if not known and self._tenants.topics.is_full():
            return CROWDED_OUT
        self._queue.add(topic, known=known)
        # From now on nobody else can have a name that collides with it.
        self._tenants.note_topics([topic])
        return TO_MAKE

    # -- the thread that makes topics ------------------------------------------------------------

    def _make(self) -> None:
        self._wanted.wait(LOOK_S)
        try:
            self.make_some()
        finally:
            self._queued(len(self._queue))
        if not len(self._queue):
            self._wanted.clear()
        self._maker.stopping.wait(MAKE_S)

    def make_some(self) -> None:
        """Make the topics whose turn it is, and let the tenants go that waited for them.

        A topic that could not be made keeps its tenant held, with the broker's reason, and is tried
        again after its pause.
        """
        topics = self._queue.next(monotonic())
        if not topics:
            return
        made, problems = make_topics(self._admin, self._settings, topics)
        self._there(made)
        for topic in topics:
            self._queue.done(topic)
        failed = problems.keys() - self._partitions.keys()
        self._tenants.note_topics((), failed)
        self._noted = self._noted - failed
        self._describe([topic for topic in topics if topic not in problems])
        waited = [tenant for topic in topics for tenant in self._tenants.on(topic)]
        self._settle(
            {tenant.name: tenant.topic for tenant in waited},
            {each.name: problems[each.topic] for each in waited if each.topic in problems},
        )
        if problems:
            # Perhaps another worker made one that it collides with.
            self._look()

    def _there(self, partitions: dict[str, int]) -> None:
        """Topics that were made just now."""
        # Other threads go through what there was: it is replaced, never changed.
        self._partitions = {**self._partitions, **partitions}
        self._tenants.note_topics(partitions)
        self._noted = self._noted | partitions.keys()

    def _describe(self, topics: Iterable[str]) -> None:
        """Learn how large a record each topic takes."""
        findings = [
            (tenant, TenantFacts(max_record_bytes=largest))
            for topic, largest in largest_records(self._admin, topics)
            for tenant in self._tenants.on(topic)
        ]
        self._tenants.note(findings)

    def _hold(self, tenant: Tenant, reason: str) -> None:
        self._tenants.note([(tenant, self._kept_back(tenant, reason))])

    def _kept_back(self, tenant: Tenant, reason: str) -> TenantFacts:
        # The thread that makes a topic tells what became of it: that needs no other look.
        made = reason == TO_MAKE
        self._state.keep_back(tenant.name, tenant.topic, None if made else monotonic())
        if not made and tenant.held in ("", TO_MAKE):
            log.warning("tenant held: its events wait", tenant=tenant.name, reason=reason)
        return {"held": reason}

    def _let_go(self, tenant: Tenant) -> TenantFacts:
        self._state.let_go(tenant.name)
        if not tenant.held:
            return {}
        if tenant.held != TO_MAKE:
            log.info("tenant released", tenant=tenant.name)
        return {"held": ""}

    def _look_now_and_then(self) -> None:
        if self._thread.stopping.wait(min(LOOK_S, FIRST_PAUSE_S)):
            return
        if monotonic() - self._looked >= LOOK_S:
            self._looked = monotonic()
            self._look()
        if due := self._state.due(monotonic()):
            self._look()
            self._make_ready(due)

    def _look(self) -> None:
        """Learn which tenants' topics exist, and notice those that went."""
        topics = self._admin.list_topics(timeout=ADMIN_S).topics
        self._watcher(topics)
        moved = self._tenants.moved_topics()
        mine = {
            name: topic
            for name, topic in topics.items()
            if (name.startswith(self._prefix) or name in moved) and topic.error is None
        }
        self._leaderless = {
            name
            for name, topic in mine.items()
            if any(partition.leader < 0 for partition in topic.partitions.values())
        }
        there = {
            name: len(topic.partitions)
            for name, topic in mine.items()
            if name not in self._leaderless
        }
        gone = {topic for topic in self._noted - mine.keys() if topic not in self._queue}
        self._tenants.note_topics(mine.keys() - self._noted, gone)
        self._noted = set(mine)
        lost = self._partitions.keys() - there.keys()
        new = there.keys() - self._partitions.keys()
        self._partitions = there
        # Before a request asks: one that would not fit has to be refused, not accepted.
        self._describe(list(new))
        for topic in lost:
            for tenant in self._tenants.on(topic):
                self._state.unready([tenant.name])
                if topic in self._leaderless:
                    self._hold(tenant, OFFLINE)
            self._state.close([topic])
