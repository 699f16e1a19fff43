"""How tenants are treated in a playback: policies by their time, and tenants held by a word.

Policies come from their topic, in the order of their timestamps.  A worker follows the topic beside
its steps, so a step may have seen a new policy a moment later than it was written; `reach` says up
to which one.  A worker's knowledge of output topics is in no log, so `hold` says that a tenant's
events wait for its topic.

    belfry.tenants    shop: spread 4 │          shop: max_fires_per_second 10 │
    reach(1)          ├─ steps ──────┴──────────┤
    reach(2)                                    ├─ from here on, or a step or two later

`always` are policies that hold from the beginning on, whatever the topic says: those of a playback
that asks for the effect of other policies.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from belfry.schedules.rejections import Rejection
from belfry.store.layout.records import text_of
from belfry.tenants.canary import CANARY, CANARY_TOPIC, canary_policy
from belfry.tenants.deliveries import RETRIES, retry_policy
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Signing
from belfry.tenants.payload_keys import PayloadKeys
from belfry.tenants.policy import TenantPolicy, problems

HELD: Final = "its topic was not there yet"
STORE_AWAY: Final = "the store for them was away"
REMOVED: Final = "it was removed"
UNKNOWN: Final = "it has no policy, and unknown tenants are not served"
NOBODY: Final[frozenset[str]] = frozenset()


class PolicyAt(NamedTuple):
    """A record of the topic of policies: when it was written, whose it is, None for no policy."""

    at_ms: int
    tenant: str
    policy: TenantPolicy | None


def said_in(statement: bytes | None) -> dict[str, Any]:
    """The settings in an owner's statement row, by their names; empty where it is no JSON."""
    try:
        said = {} if statement is None else json.loads(text_of(statement))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


# The keys for payloads that a policy names.
KeysOf = Callable[[TenantPolicy], PayloadKeys | None]


def _no_keys(_policy: TenantPolicy) -> None:
    """No payload is encrypted."""


class Treatment:
    """The directory of tenants of one playback.

    `prefix` is that of all topics, `signing` the keys by which requests are judged.
    """

    def __init__(
        self,
        changes: Sequence[PolicyAt],
        prefix: str,
        signing: Signing = Signing(),  # noqa: B008  # a frozen value
        always: Mapping[str, TenantPolicy] | None = None,
        keys_of: KeysOf = _no_keys,
        *,
        compacted: bool = False,
    ) -> None:
        """`keys_of` gives the keys that a policy's payloads are encrypted with.

        Of a `compacted` topic some of the policies are gone that were in effect once.
        """
        self._compacted = compacted
        self._keys_of = keys_of
        self._changes = sorted(changes, key=lambda each: each.at_ms)
        self._instants = [each.at_ms for each in self._changes]
        self._prefix = prefix
        self._signing = signing
        self._always = always or {}
        self._stored: dict[str, TenantPolicy] = {}
        self._closed = False
        self.reached = 0
        self.held = NOBODY
        self.tenants = self._directory({})

    def begin(self, said: Mapping[str, Any]) -> None:
        """A worker with these shared settings (names of settings) begins; nobody is held."""
        self._closed = said.get("unknown_tenants") == "closed"
        self.held = NOBODY
        self.tenants = self._directory(said)

    def lacks_policies_at(self, at_ms: int) -> bool:
        """Whether a policy may be gone that was in effect at an instant.

        Compaction removes policies that a later one has replaced, and the last one stays.
        """
        return self._compacted and not (self._instants and at_ms > self._instants[-1])

    def due(self, at_ms: int) -> int:
        """How many policies were written by an instant."""
        return bisect_right(self._instants, at_ms)

    def next_ms(self) -> int | None:
        """When the policy behind those that are reached was written; None for none."""
        at = self.reached
        return self._instants[at] if at < len(self._instants) else None

    def reach(self, count: int) -> None:
        """Let the first `count` policies be in effect, and no other."""
        if count == self.reached:
            return
        between = slice(min(count, self.reached), max(count, self.reached))
        touched = {each.tenant for each in self._changes[between]}
        if count < self.reached:
            self._stored, self.reached = {}, 0
        for each in self._changes[self.reached : count]:
            if each.policy is None:
                self._stored.pop(each.tenant, None)
            else:
                self._stored[each.tenant] = each.policy
        self.reached = count
        there = touched & self._stored.keys()
        self.tenants.note_policies(there, touched - there)
        for name in filter(self.tenants.concerns, touched):
            self.tenants.follow(self._effective_of(name) or self.tenants.defaults(name))

    @property
    def in_effect(self) -> list[TenantPolicy]:
        """All policies that are in effect by now."""
        return [*self._stored.values(), *self._always.values()]

    @property
    def keeps_elsewhere(self) -> bool:
        """Whether large payloads of anybody lie elsewhere."""
        return any(each.claim_check_over_bytes is not None for each in self.in_effect)

    def keep_large(self, *, away: bool) -> None:
        """Let the store of large payloads be away, or take them."""
        self.tenants.store_problem = STORE_AWAY if away else ""

    def hold(self, names: Iterable[str]) -> None:
        """Let the events of these tenants wait, and those of no other."""
        wanted = frozenset(names)
        for name in wanted ^ self.held:
            self.tenants.hold(name, HELD if name in wanted else "")
        self.held = wanted

    def enveloped(self, topic: str) -> bool:
        """Whether the values in a topic are envelopes, as its tenants are treated now."""
        return any(each.delivery is Delivery.ENVELOPE for each in self.tenants.on(topic))

    def _directory(self, said: Mapping[str, Any]) -> Tenants:
        everybody = said.get("claims") == "signed"
        found = Tenants(
            self._prefix + "fired.",
            Delivery(said.get("default_delivery", Delivery.PAYLOAD)),
            Level(said.get("lifecycle", Level.FAILURES)),
            signing=self._signing._replace(everybody=everybody),
        )
        found.note_policies({*self._stored, *self._always})
        found.effective_of = self._effective_of
        return found

    def _effective_of(self, name: str) -> EffectivePolicy | None:
        """How a tenant is treated; None for the defaults."""
        if name == RETRIES:
            return EffectivePolicy(retry_policy(self._prefix + "deliveries"))
        if name == CANARY:
            return EffectivePolicy(canary_policy(self._prefix + CANARY_TOPIC))
        policy = self._always.get(name) or self._stored.get(name)
        if policy is not None:
            return self._read(policy)
        if not self._closed:
            return None
        refused = Rejection("unknown_tenant", f"Tenant {name!r} has no policy.")
        return self.tenants.defaults(name)._replace(refused=refused, blocked=UNKNOWN)

    def _read(self, policy: TenantPolicy) -> EffectivePolicy:
        found = problems(policy)
        reserved = self.tenants.names.problem(policy.tenant, policy.output_topic)
        found += [] if reserved is None else [reserved]
        if found:
            defaults = self.tenants.defaults(policy.tenant)
            return defaults.standing_in(" ".join(found), policy)
        if policy.removed:
            refused = Rejection("tenant_removed", f"Tenant {policy.tenant!r} was removed.")
            return EffectivePolicy(policy, refused, REMOVED)
        return EffectivePolicy(policy, payload_keys=self._keys_of(policy))
