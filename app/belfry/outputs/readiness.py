"""Output topics: made before their tenant's first event; tenants without their topic are held.

A record that cannot be produced would roll back the whole step, with the events of all other
tenants in it. So topics are made when a tenant's first schedule is accepted, and checked before a
step produces. A tenant whose topic is missing or refuses records is *held*: its events wait in the
backlog, with a reason, and are tried again with a growing pause.

    first schedule ─► held, its topic in the queue ─► a thread of its own makes some ─► released

No partition waits while a topic is made, and the rate of new topics is bounded (`making`,
`topic_queue`).

A step finds one of these cases:

    all topics open                     it is produced
    a topic that was not checked        checked now (a request to the broker), then produced
    a topic that is missing             Aborted: the step is rolled back, its tenant is held, and
                                        the next step leaves this tenant's events in the backlog
    the transaction fails on a topic    the same, by `hold`: only the broker knew

The topic that tenants share is open if it can be written to, even if some of them are held: they
may be a hundred thousand, and the others do not wait if the registry fails for one of them.

So a tenant with a broken topic costs the others one rolled-back step, and then a look each minute.

Three sorts of threads meet here: partitions' threads (`prepare`, `hold`), the thread of policies
(`apply`), and two of this room's own, which look at topics and make them. The view of topics
(`topic_view`) is replaced as a whole, so readers need no lock; one module alone holds tenants and
releases them (`holding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog

from belfry.engine.effects import Effects
from belfry.host import machine
from belfry.host.background import Background
from belfry.kafka import librdkafka
from belfry.kafka.outcome import Aborted
from belfry.outputs.envelopes import Envelopes, is_framed
from belfry.outputs.holding import OFFLINE, Holds
from belfry.outputs.making import TopicMaker
from belfry.outputs.output_state import OutputState
from belfry.outputs.topic_queue import TO_MAKE, TopicQueue, not_writable
from belfry.outputs.topic_view import DOUBT_S, TopicView
from belfry.registry.client import Registry
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, TenantFacts

# Seconds between looks, and between turns of their thread.
LOOK_S, TURN_S = 5.0, 0.5
BLOCKED: Final = "belfry may not write to its topic: allow it the operation WRITE"

log = structlog.get_logger(__name__)


class Outputs:
    """Knows which tenants' topics can be written to; the threads of all partitions use it."""

    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        registry: Registry | None,
        watcher: Callable[[Mapping[str, Any]], None] | None = None,
        queued: Callable[[int], None] | None = None,
        admin: librdkafka.AdminClient | None = None,
    ) -> None:
        """`watcher` is told all topics that exist, `queued` how many are yet to be made.

        Any thread may call both; they have to return soon.  `admin` asks the cluster.
        """
        self._tenants = tenants
        self._envelopes = Envelopes(settings, registry)
        if admin is None:
            admin = librdkafka.AdminClient(settings.kafka_properties())
        self._admin = admin
        self._state = OutputState()
        self._lock = machine.Lock()
        self._looked = 0.0
        # Why a record to the shared topic was refused, until it is checked again; empty otherwise.
        self._shared_refused = ""
        queue = TopicQueue(settings.new_topics_per_second)
        holds = self._holds = Holds(tenants, self._state, self._envelopes)
        self._view = TopicView(
            admin, tenants, holds, queue, settings.topic("fired."), watcher or _ignore
        )
        # The engine asks this for each event, so it is the view's method without a call around it.
        self.partitions_of = self._view.partitions_of
        # Output topics that exist, by their numbers of partitions: replaced, never changed.
        self.there = lambda: self._view.partitions
        self._maker = TopicMaker(settings, tenants, holds, self._view, queue, queued or _ignore)
        failing = "output topics not looked at"
        self._thread = Background("outputs", self._look_now_and_then, log, failing)

    def start(self) -> None:
        """Look at the topics that exist, and go on looking; waits for the first look.

        Raises KafkaException if the brokers do not answer.
        """
        self._looked = machine.monotonic()
        self._view.look(self._looked)
        self._thread.start()
        self._maker.start()

    def stop(self) -> None:
        """Stop looking."""
        self._maker.end()
        self._thread.stop()
        self._maker.stop()

    @property
    def topics(self) -> int:
        """Number of output topics that exist."""
        return len(self._view.partitions)

    def prepare(self, effects: Effects) -> None:
        """Make sure of the topics of a step's tenants; Aborted if it fires to one that is missing.

        `effects.tenants` are the tenants whose schedules this step stores: their topics are made
        long before the first of these schedules is due.
        """
        if effects.unframed:
            self._state.unready(effects.unframed)
            self._make_ready(effects.unframed)
            raise Aborted("the schema id of an envelope was not known yet", {})
        topics = {fired[0] for fired in effects.fired}
        if self._state.covers(topics, effects.tenants):
            return
        closed, shared = self._state.closed(topics), self._tenants.names.shared
        own = closed - {shared}
        names = {tenant.name for topic in own for tenant in self._tenants.on(topic)}
        self._make_ready(names | effects.tenants)
        self._refuse_unfit(effects.tenants)
        firing = [tenant for topic in own for tenant in self._tenants.on(topic)]
        held = [tenant for tenant in firing if tenant.held]
        refused = {each.topic: TO_MAKE if each.held == TO_MAKE else "not there" for each in held}
        refused |= self._tenants.names.reserved((each.name, each.topic) for each in firing)
        if shared in closed and self._shared_refused:
            refused[shared] = self._shared_refused
        elif shared in closed - self._view.partitions.keys():
            refused[shared] = TO_MAKE if self._maker.makes(shared) else "not there"
        if refused:
            raise Aborted("output topics cannot be written to", refused)
        self._state.open({tenant.topic for tenant in firing} | (closed & {shared}))

    def _refuse_unfit(self, names: Iterable[str]) -> None:
        """Roll a step back that has accepted requests of a tenant that cannot have a topic.

        Its name collides with one that was there first, or there is no room for further topics. The
        same request is refused in the next step, by the facts that are known now.
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
        names given all open topics are checked. Returns whether any tenant was held.
        """
        if not topics:
            self._view.look(machine.monotonic())
            opened = self._state.opened() + self._view.letters.open
            topics = dict.fromkeys(not_writable(self._admin, opened), BLOCKED)
        anybody = False
        for topic, reason in topics.items():
            if topic == self._tenants.names.shared:
                self._shared_refused = reason
            self._view.letters.refuse(topic, reason)
            anybody |= self._holds.hold(self._tenants.on(topic), reason)
        return anybody

    def apply(self, effective: EffectivePolicy) -> None:
        """Put a tenant's policy into effect; called by the thread that follows policies.

        So the head of its envelopes is known before the first of them is made, and a new topic is
        there before it is fired to. It may ask registry and broker, and waits for them.
        """
        before = self._tenants.of(effective.policy.tenant)
        topic, found = self._tenants.topic_of(effective), TenantFacts()
        reason = ""
        if effective.policy.delivery == Delivery.ENVELOPE and not is_framed(before, topic):
            found["envelope_head"], reason = self._envelopes.head(topic)
        if reason:
            # The tenant is held from the change on: its old head does not fit its new topic.
            found["held"] = reason
        self._state.close({topic, before.topic} - {self._tenants.names.shared})
        tenant = self._tenants.follow(effective, **found)
        if reason:
            self._holds.hold([tenant], reason)
        elif (tenant.topic, tenant.delivery) != (before.topic, before.delivery):
            self._state.unready([tenant.name])
            self._view.doubt(tenant.topic)
            self._make_ready([tenant.name])

    def _make_ready(self, names: Iterable[str]) -> None:
        with self._lock:
            fresh = self._state.fresh(names)
            topics = {name: self._tenants.of(name).topic for name in fresh}
            absent = [name for name in fresh if topics[name] not in self._view.partitions]
            problems = {n: OFFLINE for n in absent if topics[n] in self._view.leaderless}
            absent = [name for name in absent if name not in problems]
            problems |= self._maker.want({name: topics[name] for name in absent})
            shared = self._tenants.names.shared
            there = {name: topic for name, topic in topics.items() if name not in problems}
            # The size of a record of the shared topic may be known from others.
            known = self._tenants.shared_record_bytes and not self._shared_refused
            again = {topic for name, topic in there.items() if self._tenants.of(name).held}
            if self._shared_refused:
                # A tenant that was met since is not held yet, but its records would be refused,
                # too.
                again |= {shared} & set(there.values())
            self._view.learn(set(there.values()) - ({shared} if known else set()), again)
            blocked = not_writable(self._admin, again)
            if shared in again:
                self._shared_refused = BLOCKED if shared in blocked else ""
            problems |= {name: BLOCKED for name, topic in there.items() if topic in blocked}
        self._holds.settle(topics, problems)
        if told := self._maker.told_before(topics, problems):
            self._make_ready(told)

    def _look_now_and_then(self) -> None:
        if self._thread.stopping.wait(TURN_S):
            return
        now_s = machine.monotonic()
        due, since_s = self._state.due(now_s), now_s - self._looked
        if since_s < (DOUBT_S if due or self._view.doubted else LOOK_S):
            return
        self._looked = now_s
        self._view.look(now_s)
        self._view.ask_again()
        if due := [n for n in due if self._tenants.of(n).topic not in self._view.leaderless]:
            self._make_ready(due)


def _ignore(_told: object) -> None:
    """The default of the two callbacks: does nothing."""
