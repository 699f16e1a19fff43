"""A tenant as the engine sees it, and the directory that answers for its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from belfry.schedules.deliveries import RETRIES, first_states
from belfry.schedules.outcomes import Outcome
from belfry.schedules.policy import TenantPolicy
from belfry.schedules.rejections import Rejection
from belfry.schedules.targets import HttpTarget

LOOSE: Final = "AT_LEAST_ONCE"


class Delivery(StrEnum):
    """What a fired record's value is: the user's bytes, or Avro `FiredEvent` around them."""

    PAYLOAD = "PAYLOAD"
    ENVELOPE = "ENVELOPE"


class Level(StrEnum):
    """Which lifecycle records a tenant gets, besides those of requests with an id."""

    ALL = "ALL"
    OUTCOMES = "OUTCOMES"
    FAILURES = "FAILURES"


_FAILURES: Final = frozenset(
    {
        Outcome.REJECTED,
        Outcome.CONFLICT,
        Outcome.NOT_FOUND,
        Outcome.TOO_LATE,
        Outcome.MISSED,
        Outcome.FAILED,
    }
)
WRITTEN: Final = {
    Level.ALL: frozenset(Outcome),
    Level.OUTCOMES: frozenset(Outcome) - {Outcome.FIRED, Outcome.DELIVERED},
    Level.FAILURES: _FAILURES,
}


class Terms(NamedTuple):
    """How a tenant is treated: its policy, why its requests are refused, why nothing is fired."""

    policy: TenantPolicy
    refused: Rejection | None = None
    barred: str = ""
    secrets: tuple[bytes, ...] = ()


class Signing(NamedTuple):
    """Who has to sign requests: all tenants, or those whose policy names a secret.

    Workers sign what they write themselves with the tenant's secret, else with their own.
    """

    everybody: bool = False
    workers_secret: bytes = b""


@dataclass(slots=True)
class Tenant:
    """One tenant: where its events go, in which shape, and why they are held back, if they are.

    `terms` say how it is treated, and what is asked for each event is worked out of them once
    (`follow`).  `held` is the shell's word about the output topic.  `home` remembers the home
    partition of a tenant that is not spread.  `paused` is the kill switch: the tenant's events wait
    in the backlog, and its schedules' misfire policies judge them when it goes on.  Whoever changes
    it calls `settle`.  A `queued` tenant's events all go through its backlog, where its rate and
    its priority are looked at; `aside` says that they do, for this reason or another.  `hooks`
    begin the deliveries of schedules that name no HTTP targets of their own.
    """

    name: str
    topic: str
    delivery: Delivery = Delivery.PAYLOAD
    level: Level = Level.FAILURES
    spread: int = 1
    max_record_bytes: int = 1_000_000
    envelope_head: bytes = b""
    held: str = ""
    home: int | None = None
    collides_with: str | None = None
    paused: bool = False
    misfire: str | None = None
    look_back_ms: int = 86_400_000
    stopped: str = field(init=False, default="")
    queued: bool = field(init=False, default=False)
    limited: bool = field(init=False, default=False)
    aside: bool = field(init=False, default=False)
    cloudevents: bool = False
    dressed: bool = field(init=False, default=False)
    loose: bool = False
    signs: bool = False
    accepted: tuple[bytes, ...] = ()
    hooks: tuple[bytes, ...] = field(init=False, default=())
    terms: Terms = field(init=False)
    written: frozenset[Outcome] = field(init=False)
    name_bytes: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.written = WRITTEN[self.level]
        self.name_bytes = self.name.encode()
        self.dressed = self.delivery is Delivery.ENVELOPE
        self.terms = Terms(
            TenantPolicy(self.name, delivery=self.delivery.value, lifecycle=self.level.value)
        )
        self.settle()

    def follow(self, terms: Terms, topic: str) -> None:
        """Be treated on these terms from now on; `topic` is where the events go."""
        policy = terms.policy
        self.terms, self.topic = terms, topic
        self.delivery, self.level = Delivery(policy.delivery), Level(policy.lifecycle)
        self.written = WRITTEN[self.level]
        self.cloudevents = policy.cloudevents
        self.hooks = self.deliveries_to(policy.http_targets)
        enveloped = self.delivery is Delivery.ENVELOPE
        self.dressed = self.cloudevents or enveloped or bool(self.hooks)
        self.spread, self.home = policy.spread, None
        self.paused, self.misfire = policy.paused or bool(terms.barred), policy.misfire
        self.look_back_ms = policy.look_back_ms
        self.queued = policy.max_fires_per_second is not None or policy.priority < 0
        self.limited = (policy.max_pending, policy.max_requests_per_second) != (None, None)
        self.settle()

    def deliveries_to(
        self, targets: Sequence[HttpTarget], *, acks: bool = False
    ) -> tuple[bytes, ...]:
        """How a fire's deliveries to these targets begin: a state of each, encoded."""
        tell = Outcome.DELIVERED in self.written
        return first_states(targets, self.terms.policy, tell=tell, acks=acks)

    def hold(self, reason: str) -> None:
        """Let the tenant's events wait, for a reason of the shell's; an empty one ends it."""
        self.held = reason
        self.settle()

    def settle(self) -> None:
        """Work out why the tenant's events wait: asked for each of them, empty if they do not."""
        why_paused = self.terms.barred or "its policy pauses it"
        self.stopped = self.held or (why_paused if self.paused else "")
        self.aside = bool(self.stopped) or self.queued


class Tenants:
    """Directory of tenants, by name or by the name's bytes; unknown ones get the defaults.

    `terms_of` is asked for the terms of each tenant whose name is met for the first time; the shell
    answers it from the topic of policies.  `held` is set by the shell (topic missing, not
    authorised …): a held tenant's events wait in the backlog until it is released.
    """

    def __init__(self, fired_prefix: str, delivery: Delivery, level: Level) -> None:
        self._fired_prefix = fired_prefix
        self._delivery = delivery
        self._level = level
        self._by_name: dict[str, Tenant] = {}
        self._by_bytes: dict[bytes, Tenant] = {}
        self._metric_names: dict[str, str] = {}
        self._moved: dict[str, set[str]] = {}
        self.removed: set[bytes] = set()
        self.signing = Signing()
        self.terms_of: Callable[[str], Terms | None] = _nobody

    def of(self, name: str) -> Tenant:
        """The tenant of this name."""
        found = self._by_name.get(name)
        return found if found is not None else self._add(name)

    def known(self, name: bytes) -> Tenant | None:
        """The tenant of this UTF-8 name, if it was asked for before."""
        return self._by_bytes.get(name)

    def of_bytes(self, name: bytes) -> Tenant:
        """The tenant of this UTF-8 name."""
        found = self._by_bytes.get(name)
        return found if found is not None else self._add(name.decode())

    def defaults(self, name: str) -> Terms:
        """The terms of a tenant that has no policy of its own."""
        policy = TenantPolicy(name, delivery=self._delivery.value, lifecycle=self._level.value)
        return Terms(policy)

    def follow(self, terms: Terms) -> Tenant:
        """Treat a tenant on these terms from now on."""
        tenant = self.of(terms.policy.tenant)
        self._treat(tenant, terms)
        return tenant

    def topic_of(self, terms: Terms) -> str:
        """Where the events of a tenant on these terms go."""
        return terms.policy.output_topic or self._fired_prefix + terms.policy.tenant

    def _treat(self, tenant: Tenant, terms: Terms) -> None:
        if terms.policy.output_topic is not None:
            self._moved.setdefault(terms.policy.output_topic, set()).add(tenant.name)
        before = tenant.topic
        tenant.follow(terms, self.topic_of(terms))
        self._let_sign(tenant, terms)
        tenant.loose = terms.policy.guarantee == LOOSE
        if self._moved:
            self._agree_on(tenant, before)
        if terms.policy.removed:
            self.removed.add(tenant.name_bytes)
        else:
            self.removed.discard(tenant.name_bytes)

    def _agree_on(self, tenant: Tenant, before: str) -> None:
        """Where tenants share a topic, all of them get what one of them is promised."""
        for topic in {before, tenant.topic}:
            names = {*self._moved.get(topic, ()), topic.removeprefix(self._fired_prefix)}
            known = [each for name in names if (each := self._by_name.get(name)) is not None]
            sharing = [each for each in (*known, tenant) if each.topic == topic]
            loose = all(each.terms.policy.guarantee == LOOSE for each in sharing)
            for each in sharing:
                each.loose = loose

    def _let_sign(self, tenant: Tenant, terms: Terms) -> None:
        tenant.signs, tenant.accepted = self._signature(tenant.name, terms)

    def _signature(self, name: str, terms: Terms) -> tuple[bool, tuple[bytes, ...]]:
        """Whether a tenant's requests have to be signed, and the secrets that may sign them."""
        everybody, own = self.signing
        accepted = (*terms.secrets, own) if own else terms.secrets
        if name == RETRIES:
            # Workers alone write for it, and may have nothing to sign with.
            return bool(own), accepted
        return everybody or terms.policy.signing_secret_ref is not None, accepted

    def secret_of(self, name: str) -> bytes:
        """What a worker signs a request of this tenant with that it writes itself; or nothing.

        Asking makes no tenant: it may come from any thread, and name anybody.
        """
        known = self._by_name.get(name)
        if known is not None:
            signs, accepted = known.signs, known.accepted
        else:
            signs, accepted = self._signature(name, self.terms_of(name) or self.defaults(name))
        return accepted[0] if signs and accepted else b""

    def on(self, topic: str) -> list[Tenant]:
        """The tenants whose events go to this topic."""
        names = set(self._moved.get(topic, ()))
        if topic.startswith(self._fired_prefix):
            names.add(topic.removeprefix(self._fired_prefix))
        return [tenant for tenant in map(self.of, sorted(names)) if tenant.topic == topic]

    def moved_topics(self) -> set[str]:
        """Topics that policies name, instead of the one that is named after the tenant."""
        return set(self._moved)

    def _collision(self, name: str) -> str | None:
        """The other tenant whose topic collides with this one's in Kafka's metrics, or None."""
        first = self._metric_names.setdefault(name.replace(".", "_"), name)
        return None if first == name else first

    def _add(self, name: str) -> Tenant:
        tenant = Tenant(name, self._fired_prefix + name, self._delivery, self._level)
        tenant.collides_with = self._collision(name)
        terms = self.terms_of(name)
        if terms is not None:
            self._treat(tenant, terms)
        else:
            self._let_sign(tenant, tenant.terms)
        self._by_name[name] = self._by_bytes[tenant.name_bytes] = tenant
        return tenant


def _nobody(_name: str) -> None:
    """Nobody has policies: all tenants are treated alike."""
