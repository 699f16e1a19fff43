"""A tenant as the engine sees it: a value, computed once from its policy and from facts about it.

Partitions' threads read it for each event while another thread changes policies, so it is never
changed.  A new effective policy makes another value of its tenant (`dataclasses.replace`), and
`tenants/directory.py` hands it out from the next step on.

    TenantPolicy          as it was written
      └► EffectivePolicy  with its secrets, and with why requests are refused or events wait
           └► Tenant      with the shell's findings (topic, size of records, registry's id), and
                          with answers that each event needs, computed once

Three words about events that do not fire, from the narrow to the wide:

    held       the output topic is missing or refuses records: the shell finds that
    paused     the policy says so, or cannot be carried out
    stopped    either of them, as a sentence for people; empty if events fire
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypedDict

from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.targets import HttpTarget
from belfry.tenants.canary import CANARY
from belfry.tenants.deliveries import RETRIES, first_states
from belfry.tenants.payload_keys import PayloadKeys
from belfry.tenants.policy import TenantPolicy


class Delivery(StrEnum):
    """The value of a fired record: the user's bytes, or Avro `FiredEvent` around them."""

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


class EffectivePolicy(NamedTuple):
    """A policy in effect, with the reasons why requests are refused or events wait.

    `secrets` may sign the tenant's requests; workers sign with the first one. `payload_keys`
    encrypt its payloads at rest, if the policy names keys that could be read.
    """

    policy: TenantPolicy
    refused: Rejection | None = None
    blocked: str = ""
    secrets: tuple[bytes, ...] = ()
    payload_keys: PayloadKeys | None = None

    def standing_in(self, why: str, policy: TenantPolicy | None) -> EffectivePolicy:
        """These defaults in place of a policy that is not carried out: events wait.

        If that policy names keys for payloads, the tenant lacks them: nothing is stored for it. If
        it names a secret, requests still have to be signed.
        """
        if policy is None:
            return self._replace(blocked=why)
        kept = replace(
            self.policy,
            payload_key_ref=policy.payload_key_ref,
            signing_secret_ref=policy.signing_secret_ref,
        )
        return self._replace(policy=kept, blocked=why)


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant: where its events go, in which shape, and why they wait, if they do.

    `effective` is the policy in effect; `topic` follows from it. `held`, `max_record_bytes` and
    `envelope_head` are the shell's findings about the output topic. Answers that each event needs
    are computed from these once: a `paused` tenant's events wait in the backlog (the kill switch),
    and its schedules' misfire policies judge them when the pause ends; `stopped` says why events
    wait, empty if they do not. A `queued` tenant's events all go through its backlog, where its
    rate and its priority count; `aside` says that they do, for this reason or another.  `hooks`
    begin the deliveries of schedules that name no HTTP targets of their own.  Requests are `simple`
    for a tenant that has one home, which never changed, no quota, and no key for payloads. A tenant
    `lacks_key` if its policy names such a key and the worker cannot read it: nothing is stored for
    it, since its payloads would be readable. A `shared` tenant's events go to the topic of all such
    tenants, in transactions always, with `key_of` before their keys.  A tenant that is
    `crowded_out` begins no schedules: unknown tenants have as many topics as they may have.
    `source_topic` is the topic of requests if events are to say where their request lies. Payloads
    of more than `claims_over` bytes are stored elsewhere; None: no payload is.
    """

    name: str
    topic: str
    effective: EffectivePolicy = field(repr=False)
    held: str = ""
    max_record_bytes: int = 1_000_000
    envelope_head: bytes = b""
    source_topic: bytes = b""
    non_transactional: bool = False
    signs: bool = False
    accepted: tuple[bytes, ...] = field(default=(), repr=False)
    collides_with: str | None = None
    crowded_out: bool = False
    name_bytes: bytes = field(init=False)
    delivery: Delivery = field(init=False)
    level: Level = field(init=False)
    written: frozenset[Outcome] = field(init=False)
    cloudevents: bool = field(init=False)
    hooks: tuple[bytes, ...] = field(init=False)
    enveloped: bool = field(init=False)
    spread: int = field(init=False)
    simple: bool = field(init=False)
    shared: bool = field(init=False)
    key_of: bytes = field(init=False)
    payload_keys: PayloadKeys | None = field(init=False, repr=False)
    claims_over: int | None = field(init=False)
    lacks_key: bool = field(init=False)
    paused: bool = field(init=False)
    misfire: str | None = field(init=False)
    look_back_ms: int = field(init=False)
    remember_ms: int = field(init=False)
    queued: bool = field(init=False)
    limited: bool = field(init=False)
    stopped: str = field(init=False)
    aside: bool = field(init=False)

    def __post_init__(self) -> None:
        for name, value in self._computed():
            object.__setattr__(self, name, value)
        # First states of deliveries depend on the outcomes that are written, which are set above.
        object.__setattr__(self, "hooks", self.deliveries_to(self.effective.policy.http_targets))
        more = bool(self.hooks or self.source_topic)
        object.__setattr__(self, "enveloped", self.enveloped or more)

    def _computed(self) -> list[tuple[str, Any]]:
        policy = self.effective.policy
        delivery, level = Delivery(policy.delivery), Level(policy.lifecycle)
        paused = policy.paused or bool(self.effective.blocked)
        queued = policy.max_fires_per_second is not None or policy.priority < 0
        limited = (policy.max_pending, policy.max_requests_per_second) != (None, None)
        why_paused = self.effective.blocked or "its policy pauses it"
        stopped = self.held or (why_paused if paused else "")
        refused = self.effective.refused is not None or self.collides_with is not None
        refused = refused or self.crowded_out
        encrypts = policy.payload_key_ref is not None
        odd = refused or limited or encrypts
        return [
            ("name_bytes", self.name.encode()),
            ("delivery", delivery),
            ("level", level),
            ("written", WRITTEN[level]),
            ("cloudevents", policy.cloudevents),
            ("enveloped", policy.cloudevents or delivery is Delivery.ENVELOPE),
            ("spread", policy.spread),
            ("simple", policy.spread == 1 and not (policy.former_spreads or odd)),
            ("shared", policy.is_shared),
            ("key_of", self.name.encode() + b"/" if policy.is_shared else b""),
            ("payload_keys", self.effective.payload_keys),
            ("claims_over", policy.claim_check_over_bytes),
            ("lacks_key", encrypts and self.effective.payload_keys is None),
            ("paused", paused),
            ("misfire", policy.misfire),
            ("look_back_ms", policy.look_back_ms),
            ("remember_ms", policy.remember_ms),
            ("queued", queued),
            ("limited", limited),
            ("stopped", stopped),
            ("aside", bool(stopped) or queued),
        ]

    def deliveries_to(
        self, targets: Sequence[HttpTarget], *, acks: bool = False
    ) -> tuple[bytes, ...]:
        """The first states of a fire's deliveries to these targets, encoded."""
        tell = Outcome.DELIVERED in self.written
        return first_states(targets, self.effective.policy, tell=tell, acks=acks)


class TenantFacts(TypedDict, total=False):
    """Facts about a tenant that the shell finds out, and that its policy does not have."""

    held: str
    max_record_bytes: int
    envelope_head: bytes
    crowded_out: bool


class Signing(NamedTuple):
    """Says which tenants have to sign requests: all, or those whose policy names a secret.

    Workers sign what they write themselves with the tenant's secret, else with the first of their
    own keys for `requests`. The tenants of deliveries and of the canary have keys of their own, and
    no other signature counts for them.
    """

    everybody: bool = False
    requests: tuple[bytes, ...] = ()
    deliveries: tuple[bytes, ...] = ()
    canary: tuple[bytes, ...] = ()

    def of(self, name: str) -> tuple[bytes, ...] | None:
        """The keys of a tenant of belfry's own, None for any other."""
        return {RETRIES: self.deliveries, CANARY: self.canary}.get(name)

    def needed(self, name: str, effective: EffectivePolicy) -> tuple[bool, tuple[bytes, ...]]:
        """Whether a tenant's requests have to be signed, and the secrets that may sign them."""
        if (own := self.of(name)) is not None:
            # Only workers write for this tenant. If no tenant has to sign, workers may have no key
            # to sign with; if all have to, no unsigned request counts, not even a worker's.
            return self.everybody or bool(own), own
        signs = self.everybody or effective.policy.signing_secret_ref is not None
        return signs, (*effective.secrets, *self.requests)
