"""Policies as they lie in the topic, and the effective policies of their tenants.

A policy stays bytes until its tenant is met: most of a hundred thousand tenants have nothing to do
with this worker.  Then it is decoded and looked at, and each case has one answer:

    shop     a policy that can be carried out     treated by it
    odd      a policy of a later release          nothing fires, with the reason; never in part
    gone     a policy that says `removed`         requests refused, nothing fires
    forged   nothing but unsigned policies        nothing fires
    vault    its keys for payloads are not there  nothing fires, nothing is kept
    (both)   odd or forged, and it names keys     nothing fires, nothing is kept
    new      no policy                            the defaults; or refused, if policies are required

belfry's own tenants, for deliveries and probes, have policies from the code, not from the topic.

One thread replaces stored policies; any thread may ask, because values are never changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

import structlog

from belfry.client.decoding import Decoder
from belfry.policies.payload_keys import keys_of_policy
from belfry.policies.secrets import BadSecret, SecretPlaces
from belfry.registry.client import Registry
from belfry.registry.subjects import look_in
from belfry.schedules.rejections import Rejection
from belfry.settings import Settings
from belfry.tenants.canary import CANARY, CANARY_TOPIC, canary_policy
from belfry.tenants.deliveries import RETRIES, retry_policy
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy, problems
from belfry.wire.policies import policy_of
from belfry.wire.record import Headers

UNKNOWN: Final = "it has no policy, and unknown tenants are not served"
REMOVED: Final = "it was removed"
UNSIGNED: Final = (
    "its policy is not signed, and workers carry out signed ones alone (BELFRY_POLICIES=signed)"
)

log = structlog.get_logger(__name__)

Stored = tuple[bytes, Headers | None]


class StoredPolicies:
    """The policies of all tenants.

    `closed` says that tenants without a policy are not served.  A hundred thousand policies take
    their bytes and a dictionary's entry each.
    """

    def __init__(self, settings: Settings, tenants: Tenants, registry: Registry | None) -> None:
        """`tenants` has the defaults, and knows which topics a policy may name."""
        self.closed = settings.unknown_tenants == "closed"
        self._tenants = tenants
        self._deliveries = settings.topic("deliveries")
        self._canary = settings.topic(CANARY_TOPIC)
        self._places = SecretPlaces(settings.secrets_dir)
        self._decoder = Decoder("TenantPolicy", look_in(registry), only=True)
        self._stored: dict[str, Stored] = {}
        # Tenants with only unsigned policies, which do not count: by name the last one, or None for
        # a removal.
        self._unsigned: dict[str, Stored | None] = {}
        # Tenants whose keys for payloads could not be read when they were asked for last.
        self._keyless: set[str] = set()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._stored)

    def __contains__(self, name: str) -> bool:
        """Whether a tenant has a policy that counts."""
        return name in self._stored

    def put(self, changed: Mapping[str, Stored | None]) -> None:
        """Keep these records in place of those before; None: the tenant has no policy any more."""
        for name, stored in changed.items():
            if stored is None:
                self._stored.pop(name, None)
            else:
                self._stored[name] = stored

    def distrust(self, name: str, unsigned: Stored | None) -> None:
        """Note the unsigned record of a tenant without a signed one; None: a removal."""
        self._unsigned[name] = unsigned

    def trust(self, name: str) -> None:
        """Note that a tenant has a signed policy, or a signed removal."""
        self._unsigned.pop(name, None)

    def names(self) -> list[str]:
        """Tenants that have a policy, in the order of their names; costs a sort of all of them."""
        return sorted(self._stored.copy())

    def effective_of(self, name: str) -> EffectivePolicy | None:
        """The effective policy of a tenant; None for the defaults.

        The directory asks this for each tenant that it meets for the first time (`tenants/`).
        """
        if name == RETRIES:
            # belfry's own: retries of deliveries are its schedules, whatever the topic says.
            return EffectivePolicy(retry_policy(self._deliveries))
        if name == CANARY:
            return EffectivePolicy(canary_policy(self._canary))
        stored = self._stored.get(name)
        if stored is not None:
            return self._effective(name, stored)
        if name in self._unsigned:
            return self._distrusted(name)
        if not self.closed:
            return None
        return self._tenants.defaults(name)._replace(refused=_unknown(name), blocked=UNKNOWN)

    def policy(self, name: str) -> TenantPolicy | None:
        """The policy that a tenant is treated by; None where it has none.  No secret is read.

        For a policy that cannot be carried out this is the stand-in that its tenant is treated by;
        `problem` says why.
        """
        stored = self._stored.get(name)
        if stored is None:
            return None
        policy, why = self._read(name, stored)
        return self._in_place_of(name, policy, why).policy if why or policy is None else policy

    def problem(self, name: str) -> str:
        """Why a tenant's policy is not carried out as it was written; empty where it is.

        HTTP tells it to a caller who is about to change that policy.
        """
        stored = self._stored.get(name)
        if stored is None:
            return UNSIGNED if name in self._unsigned else ""
        return self._read(name, stored)[1]

    def mentioning(self, word: bytes) -> list[TenantPolicy]:
        """Policies whose records contain these bytes; no other record is decoded."""
        named = [each for each in self._stored.copy().items() if word in each[1][0]]
        return [policy for each in named if (policy := self._read(*each)[0]) is not None]

    def found_keys(self) -> set[str]:
        """Tenants whose keys could not be read at the last try, and can be read now."""
        found = set()
        for name in self._keyless.copy():
            stored = self._stored.get(name)
            policy = None if stored is None else self._read(name, stored)[0]
            if policy is None:
                self._keyless.discard(name)
                continue
            with suppress(BadSecret):
                keys_of_policy(self._places, policy)
                found.add(name)
        return found

    def _effective(self, name: str, stored: Stored) -> EffectivePolicy:
        policy, why = self._read(name, stored)
        if policy is None or why:
            log.error("policy not applied: the tenant's events wait", tenant=name, reason=why)
            self._keyless.discard(name)
            return self._in_place_of(name, policy, why)
        secrets = self._secrets(policy)
        if policy.removed:
            return EffectivePolicy(policy, _removed(name), REMOVED, secrets)
        try:
            keys = keys_of_policy(self._places, policy)
            self._keyless.discard(name)
            return EffectivePolicy(policy, secrets=secrets, payload_keys=keys)
        except BadSecret as error:
            blocked = f"the keys of its payloads cannot be read: {error}"
            if name not in self._keyless:
                log.critical("a tenant's events wait", tenant=name, reason=blocked)
            self._keyless.add(name)
            return EffectivePolicy(policy, blocked=blocked, secrets=secrets)

    def _in_place_of(self, name: str, policy: TenantPolicy | None, why: str) -> EffectivePolicy:
        found = self._tenants.defaults(name).standing_in(why, policy)
        return found if policy is None else found._replace(secrets=self._secrets(policy))

    def _distrusted(self, name: str) -> EffectivePolicy:
        """The effective policy of a tenant with only an unsigned policy.

        That may be the tenant's own, of the time before policies had to be signed.  So where it
        names keys for payloads, no payload is kept readable.  A signing secret that it names is not
        trusted.
        """
        unsigned = self._unsigned.get(name)
        policy = None if unsigned is None else self._read(name, unsigned)[0]
        policy = None if policy is None else replace(policy, signing_secret_ref=None)
        return self._in_place_of(name, policy, UNSIGNED)

    def _read(self, name: str, stored: Stored) -> tuple[TenantPolicy | None, str]:
        """A policy as it was written, and why it cannot be carried out; empty if it can."""
        record = self._decoder.record(*stored)
        if record is None:
            return None, "its policy cannot be carried out: its record is no TenantPolicy."
        policy = policy_of(record)
        found = problems(policy)
        if policy.tenant != name:
            found.append(f"it is about tenant {policy.tenant[:100]!r}, under another's key.")
        reserved = self._tenants.names.problem(policy.tenant, policy.output_topic)
        if reserved is not None:
            found.append(reserved)
        return policy, f"its policy cannot be carried out: {' '.join(found)}" if found else ""

    def _secrets(self, policy: TenantPolicy) -> tuple[bytes, ...]:
        """The secrets that the tenant may sign with; none where they cannot be read."""
        if policy.signing_secret_ref is None:
            return ()
        try:
            return self._places.read(policy.signing_secret_ref)
        except BadSecret as error:
            log.critical(
                "a tenant's secret cannot be read: its requests are refused",
                tenant=policy.tenant, reason=str(error),
            )  # fmt: skip
            return ()


def _unknown(name: str) -> Rejection:
    return Rejection(
        "unknown_tenant",
        f"Tenant {name!r} has no policy, and this belfry serves known tenants alone"
        f" (BELFRY_UNKNOWN_TENANTS=closed): run `belfry tenant set {name}` first.",
    )


def _removed(name: str) -> Rejection:
    return Rejection(
        "tenant_removed",
        f"Tenant {name!r} was removed; `belfry tenant set {name}` brings it back.",
    )
