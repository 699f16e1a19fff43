"""Output topics: there before their tenant's first event is, and tenants held whose is not.

A record that cannot be produced would roll back the whole step, with everybody else's events in it.
So topics are made when a tenant's first schedule is accepted, are checked before a step produces,
and a tenant whose topic is missing or refused is *held*: its events wait in the backlog, with a
reason, and are tried again with a growing pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclOperation,
    AdminClient,
    ConfigResource,
)

from belfry.engine.effects import Effects
from belfry.registry.client import Registry
from belfry.schedules.tenant import Delivery, Tenant, Terms
from belfry.schedules.tenants import Found, Tenants
from belfry.settings import Settings
from belfry.worker.envelopes import Envelopes, is_framed
from belfry.worker.outcome import Aborted, TopicGone
from belfry.worker.topics import create_topics, output_topic_spec

LOOK_S: Final = 5.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
ADMIN_S: Final = 10.0
TOPICS_AT_ONCE: Final = 500
OFFLINE: Final = "a partition of its topic has no leader"
BARRED: Final = "belfry may not write to its topic: allow it the operation WRITE"
BATCH_OVERHEAD_BYTES: Final = 1024

log = structlog.get_logger(__name__)


class Outputs:
    """Knows which tenants' topics can be written to; used by all partitions' threads."""

    def __init__(self, settings: Settings, tenants: Tenants, registry: Registry | None) -> None:
        self._settings = settings
        self._tenants = tenants
        self._envelopes = Envelopes(settings, registry)
        self._admin = AdminClient(settings.kafka_properties())
        self._prefix = settings.topic("fired.")
        self._partitions: dict[str, int] = {}
        self._leaderless: set[str] = set()
        self._noted: set[str] = set()
        self._ready: set[str] = set()
        # Topics whose tenants are all ready.
        self._open: set[str] = set()
        self._retry: dict[str, tuple[float, float]] = {}
        self._lock = Lock()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="belfry-outputs", daemon=True)
        self.watcher: Callable[[Mapping[str, Any]], None] = _nobody

    def start(self) -> None:
        """Look at the topics that exist, and go on looking."""
        self._look()
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopping.set()
        self._thread.join()

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
        """Make sure of the topics of a step's tenants; Aborted if it fires to one that is not."""
        if effects.unframed:
            self._ready -= effects.unframed
            self._make_ready(effects.unframed)
            raise Aborted("the schema id of an envelope was not known yet", {})
        topics = {fired[0] for fired in effects.fired}
        if topics <= self._open and effects.tenants <= self._ready:
            return
        closed = topics - self._open
        names = {tenant.name for topic in closed for tenant in self._tenants.on(topic)}
        self._make_ready(names | effects.tenants)
        self._refuse_colliding(effects.tenants)
        firing = [tenant for topic in closed for tenant in self._tenants.on(topic)]
        refused = {tenant.topic: "not there" for tenant in firing if tenant.held}
        if refused:
            raise Aborted("output topics cannot be written to", refused)
        self._open.update(tenant.topic for tenant in firing)

    def _refuse_colliding(self, names: Iterable[str]) -> None:
        """Of two tenants whose topics collide, Kafka's controller knows which one was there first.

        A step that accepted a request of the other one is rolled back: with the next, it is
        refused.
        """
        rivals = {name: self._tenants.of(name).collides_with for name in names}
        lost = {name: rival for name, rival in rivals.items() if rival is not None}
        if lost:
            raise Aborted(f"names of tenants collide, and others had them first: {lost}", {})

    def hold(self, topics: dict[str, str]) -> bool:
        """Hold the tenants of topics that refused a record, and of those that are offline.

        Who may not write to a topic is told so for the whole transaction, without its name.
        Returns whether there is anybody to hold.
        """
        if not topics:
            self._look()
            topics = dict.fromkeys(self._barred(self._open), BARRED)
        anybody = False
        for topic, reason in topics.items():
            for tenant in self._tenants.on(topic):
                self._hold(tenant, reason)
                anybody = True
        return anybody

    def treat(self, terms: Terms) -> None:
        """Treat a tenant on new terms.

        The head of its envelopes is there before the first of them is made, and a new topic before
        it is fired to.
        """
        before = self._tenants.of(terms.policy.tenant)
        topic, found = self._tenants.topic_of(terms), Found()
        reason = ""
        if terms.policy.delivery == Delivery.ENVELOPE and not is_framed(before, topic):
            found["envelope_head"], reason = self._envelopes.head(topic)
        if reason:
            # It is held from the very change on: nothing is made of the two that do not fit.
            found["held"] = reason
        self._open -= {topic, before.topic}
        tenant = self._tenants.follow(terms, **found)
        if reason:
            self._hold(tenant, reason)
        elif (tenant.topic, tenant.delivery) != (before.topic, before.delivery):
            self._ready.discard(tenant.name)
            self._make_ready([tenant.name])

    def _make_ready(self, names: Iterable[str]) -> None:
        with self._lock:
            fresh = [name for name in names if name not in self._ready]
            topics = {name: self._tenants.of(name).topic for name in fresh}
            absent = [name for name in fresh if topics[name] not in self._partitions]
            offline = [name for name in absent if topics[name] in self._leaderless]
            problems = dict.fromkeys(offline, OFFLINE)
            absent = [name for name in absent if name not in problems]
            problems |= self._create(absent) if absent else {}
            self._describe([topics[name] for name in fresh if name not in problems])
            again = [name for name in fresh if self._tenants.of(name).held]
            barred = self._barred({topics[name] for name in again if name not in problems})
            problems |= {name: BARRED for name in again if topics[name] in barred}
        findings: list[tuple[Tenant, Found]] = []
        for name in fresh:
            tenant = self._tenants.of(name)
            if tenant.topic != topics[name]:
                # A policy has moved it meanwhile; whoever did makes it ready there.
                continue
            reason, found = problems.get(name, ""), Found()
            enveloped = tenant.delivery is Delivery.ENVELOPE
            if not reason and enveloped and not is_framed(tenant, tenant.topic):
                if self._pauses(name):
                    # It is held, and its requests must not ask the registry with every step.
                    continue
                found["envelope_head"], reason = self._envelopes.head(tenant.topic)
            found |= self._kept_back(tenant, reason) if reason else self._let_go(tenant)
            findings.append((tenant, found))
        self._tenants.note(findings)

    def _create(self, names: list[str]) -> dict[str, str]:
        """Create tenants' topics; the reason for each that could not be."""
        if not self._settings.create_topics:
            return dict.fromkeys(names, "its topic is missing, and belfry creates none")
        try:
            brokers = len(self._admin.list_topics(timeout=ADMIN_S).brokers)
        except KafkaException as error:
            return dict.fromkeys(names, error.args[0].str())
        specs = [output_topic_spec(self._settings, topic, brokers) for topic in self._of(names)]
        try:
            create_topics(self._admin, specs)
        except KafkaException:
            return self._create_one_by_one(names, brokers)
        self._there({spec.name: spec.partitions for spec in specs})
        return {}

    def _there(self, partitions: dict[str, int]) -> None:
        """Topics that were made just now."""
        self._partitions.update(partitions)
        self._tenants.note_topics(partitions)
        self._noted |= partitions.keys()

    def _of(self, names: list[str]) -> set[str]:
        return {self._tenants.of(name).topic for name in names}

    def _create_one_by_one(self, names: list[str], brokers: int) -> dict[str, str]:
        problems: dict[str, str] = {}
        for name in names:
            spec = output_topic_spec(self._settings, self._tenants.of(name).topic, brokers)
            try:
                create_topics(self._admin, [spec])
                self._there({spec.name: spec.partitions})
            except KafkaException as error:
                problems[name] = error.args[0].str()
                if error.args[0].code() == KafkaError.TOPIC_EXCEPTION:
                    # Perhaps another worker made one that it collides with.
                    self._look()
        return problems

    def _describe(self, topics: list[str]) -> None:
        """Learn how large a record each topic takes."""
        for some in _shares(topics):
            resources = [ConfigResource("topic", topic) for topic in some]
            findings: list[tuple[Tenant, Found]] = []
            for resource, answer in self._admin.describe_configs(resources).items():
                try:
                    limit = int(answer.result(ADMIN_S)["max.message.bytes"].value)
                except (KafkaException, TimeoutError) as error:
                    log.warning("topic not described", topic=resource.name, reason=repr(error))
                    continue
                found: Found = {"max_record_bytes": limit - BATCH_OVERHEAD_BYTES}
                findings += [(tenant, found) for tenant in self._tenants.on(resource.name)]
            self._tenants.note(findings)

    def _barred(self, topics: Iterable[str]) -> set[str]:
        """Those of these topics that belfry may not write to."""
        barred: set[str] = set()
        for some in _shares(topics):
            answers = self._admin.describe_topics(
                TopicCollection(some), include_authorized_operations=True, request_timeout=ADMIN_S
            )
            for topic, answer in answers.items():
                try:
                    allowed = answer.result(ADMIN_S).authorized_operations
                except (KafkaException, TimeoutError) as error:
                    log.warning("topic not described", topic=topic, reason=repr(error))
                    continue
                if allowed is not None and AclOperation.WRITE not in allowed:
                    barred.add(topic)
        return barred

    def _pauses(self, name: str) -> bool:
        """Whether a tenant is held, and it is not yet time to try again."""
        return self._retry.get(name, (0.0, 0.0))[0] > monotonic()

    def _hold(self, tenant: Tenant, reason: str) -> None:
        self._tenants.note([(tenant, self._kept_back(tenant, reason))])

    def _kept_back(self, tenant: Tenant, reason: str) -> Found:
        _, pause = self._retry.get(tenant.name, (0.0, FIRST_PAUSE_S / 2))
        pause = min(pause * 2, LONGEST_PAUSE_S)
        self._retry[tenant.name] = (monotonic() + pause, pause)
        self._ready.discard(tenant.name)
        self._open.discard(tenant.topic)
        if not tenant.held:
            log.warning("tenant held: its events wait", tenant=tenant.name, reason=reason)
        return {"held": reason}

    def _let_go(self, tenant: Tenant) -> Found:
        self._ready.add(tenant.name)
        self._retry.pop(tenant.name, None)
        if not tenant.held:
            return {}
        log.info("tenant released", tenant=tenant.name)
        return {"held": ""}

    def _run(self) -> None:
        pause = min(LOOK_S, FIRST_PAUSE_S)
        looked = monotonic()
        while not self._stopping.wait(pause):
            try:
                if monotonic() - looked >= LOOK_S:
                    looked = monotonic()
                    self._look()
                due = [name for name, (at, _) in self._retry.items() if at <= monotonic()]
                if due:
                    self._look()
                    self._make_ready(due)
            except Exception as error:  # noqa: BLE001  # the cluster is away: the next look tells
                log.warning("output topics not looked at", reason=str(error))

    def _look(self) -> None:
        """Learn which tenants' topics exist, and notice those that went."""
        topics = self._admin.list_topics(timeout=ADMIN_S).topics
        self.watcher(topics)
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
        self._tenants.note_topics(mine.keys() - self._noted, self._noted - mine.keys())
        self._noted = set(mine)
        gone = self._partitions.keys() - there.keys()
        new = there.keys() - self._partitions.keys()
        self._partitions = there
        # Before a request asks: one that would not fit has to be refused, not accepted.
        self._describe(list(new))
        for topic in gone:
            for tenant in self._tenants.on(topic):
                self._ready.discard(tenant.name)
                if topic in self._leaderless:
                    self._hold(tenant, OFFLINE)
            self._open.discard(topic)


def _shares(topics: Iterable[str]) -> Iterator[list[str]]:
    """These topics, as many at a time as a broker tells of within the time for an answer."""
    asked = sorted(set(topics))
    for start in range(0, len(asked), TOPICS_AT_ONCE):
        yield asked[start : start + TOPICS_AT_ONCE]


def _nobody(_topics: Mapping[str, Any]) -> None:
    """Nobody else looks at the cluster's topics."""
