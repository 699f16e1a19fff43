"""Policies for HTTP: read from those that this worker follows, and written to the topic.

    PUT   catch_up ─► look at the present policy ─► put: a record in belfry.tenants, for all workers
    GET   policy: the one that this worker has read, perhaps a fetch behind

No policy is changed in place: a written policy is carried out once it has come back from the topic,
on this worker as on all others.  Calls that block run in a thread of the server, never on its event
loop.
"""

from __future__ import annotations

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster
from belfry.client.key_ring import KeyRing
from belfry.client.policy_fields import BadPolicy
from belfry.client.schemas import RegisteredSchemas
from belfry.client.tenants import PolicySigning, TenantPolicies
from belfry.policies.follower import Policies
from belfry.policies.payload_keys import keys_of_policy
from belfry.policies.secrets import BadSecret, SecretPlaces
from belfry.settings import Settings, property_name
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_references import REFERRING
from belfry.tenants.shredding import KeyToDestroy, key_to_destroy
from belfry.wire.worker_keys import Purpose


class PolicyClient:
    """Reads the policies that a worker follows, and writes policies; for any thread."""

    def __init__(self, settings: Settings, followed: Policies) -> None:
        self._followed = followed
        self._places = SecretPlaces(settings.secrets_dir)
        properties = settings.kafka_properties()
        cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        schemas = None
        if settings.schema_registry_url is not None:
            given = {property_name(key): value for key, value in settings.registry.items()}
            schemas = RegisteredSchemas(settings.schema_registry_url, given)
        signing = PolicySigning(
            settings.worker_keys(Purpose.POLICIES), settings.policies == "signed"
        )
        self._written = TenantPolicies(cluster, settings.cluster.topic_prefix, schemas, signing)

    def names(self) -> list[str]:
        """Tenants that have a policy, in order; quick."""
        return self._followed.stored.names()

    def policy(self, tenant: str) -> TenantPolicy | None:
        """A tenant's policy; quick."""
        return self._followed.stored.policy(tenant)

    @property
    def closed(self) -> bool:
        """Whether tenants without a policy are not served."""
        return self._followed.stored.closed

    def catch_up(self, tenant: str) -> None:
        """Read the topic up to its present end; blocks.  Raises `Unavailable` or `BadPolicy`."""
        try:
            self._followed.catch_up()
        except ConnectionError as error:
            raise Unavailable(str(error)) from None
        problem = self._followed.stored.problem(tenant)
        if problem:
            raise BadPolicy(f"{tenant}: {problem}")

    def put(
        self, policy: TenantPolicy, *, share_topic: bool = False, reason: str | None = None
    ) -> None:
        """Write a policy; blocks.  Raises `BadPolicy` or `Unavailable`.

        With `share_topic` it may name the topic of another tenant's policy.  `reason` goes into the
        audit log.

        A new reference to a secret is read first: with a wrong reference all requests of the tenant
        would be refused.  This shows only that this worker can read the secret: the others have
        variables and files of their own.
        """
        before = self.policy(policy.tenant)
        for name in REFERRING:
            reference = getattr(policy, name)
            if reference is not None and (before is None or getattr(before, name) != reference):
                self._try(policy, name)
        self._written.put(policy, share_topic=share_topic, reason=reason)

    def _try(self, policy: TenantPolicy, name: str) -> None:
        try:
            self._places.read(getattr(policy, name))
            keys_of_policy(self._places, policy)
        except BadSecret as error:
            raise BadPolicy(f"{policy.tenant}: {name}: {error}") from None

    def remove(self, tenant: str, *, reason: str | None = None) -> None:
        """Forget a policy; blocks.  Raises `Unavailable`."""
        self._written.remove(tenant, reason=reason)

    def to_destroy(self, removed: TenantPolicy | None) -> KeyToDestroy | None:
        """The secret that a removed policy leaves behind; costs a look at all policies."""
        if removed is None or removed.payload_key_ref is None:
            return None
        # Paths to one file may begin differently, so their last part is searched for.
        word = removed.payload_key_ref.rpartition("/")[2].removeprefix("file:")
        return key_to_destroy(removed, self._followed.stored.mentioning(word.encode()))

    def key_ids(self, tenant: str, reference: str) -> tuple[str, ...] | None:
        """Ids of the keys from the secrets at a reference; None where there is none.

        A file with a bad secret gives no ids, but it counts as being there.
        """
        try:
            # A worker takes no cut or short line as a key, but a thief may.
            return KeyRing(tenant, self._places.read(reference)).ids
        except BadSecret:
            return () if self._places.is_there(reference) else None

    def is_used(self, tenant: str) -> bool:
        """Whether the tenant may have schedules already; blocks."""
        return self._written.is_known(tenant)
