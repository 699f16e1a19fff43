"""Policies as commands reach them: through Kafka, or over HTTP where --http-url names a worker.

Over HTTP a key of the role `operate` is enough, or `admin` for fields of the tenant's own: no Kafka
credentials, no registry.

Commands call `policies_of` and do not ask which way it is. The two ways differ in this:

    through Kafka                                   over HTTP
    all policies are read with the topic            pages of names, then each policy by itself
    signed here, with the secret of the settings    signed by the worker
    knows whether a tenant has been used            leaves that to the worker
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlencode

from belfry.cli.failures import CommandError, Exit
from belfry.cli.remote import Remote, tenant_path

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.client.tenants import TenantPolicies
    from belfry.tenants.policy import TenantPolicy
    from belfry.tenants.shredding import KeyToDestroy

# Names of tenants on one page.
PAGE: Final = 1000


class PolicyStore(Protocol):
    """Access of commands to policies, through Kafka or over HTTP.

    Methods raise `BelfryError` or `CommandError` for a refusal or a missing answer.
    """

    def all(self) -> dict[str, TenantPolicy]:
        """Every tenant's policy by name."""

    def get(self, tenant: str) -> TenantPolicy | None:
        """The policy of a tenant, or None for one that has none."""

    def put(
        self, *policies: TenantPolicy, share_topic: bool = False, reason: str | None = None
    ) -> None:
        """Write policies, of which one may name another tenant's topic if that is to be shared.

        `reason` says why, for the audit log.
        """

    def remove(self, tenant: str, *, reason: str | None = None) -> None:
        """Forget a tenant's policy."""

    def to_destroy(self, removed: TenantPolicy | None) -> KeyToDestroy | None:
        """The secret that a removed policy leaves to its operator, or None."""

    def is_known(self, tenant: str) -> bool:
        """Whether the tenant may have schedules, so that a change of its spread has to mind
        them.
        """


def policies_of(session: Session) -> PolicyStore:
    """The policies of the belfry that the options name."""
    return HttpPolicies(Remote(session)) if session.asks_http else kafka_policies(session)


def kafka_policies(session: Session) -> TenantPolicies:
    """The policies as they lie in Kafka.

    Policies are written with the schema of the registry where one is configured, and signed where
    the settings hold the secret of the workers.
    """
    from belfry.client.schemas import RegisteredSchemas
    from belfry.client.tenants import PolicySigning, TenantPolicies
    from belfry.settings import property_name
    from belfry.wire.worker_keys import Purpose

    settings = session.settings
    schemas = None
    if settings.schema_registry_url is not None:
        properties = {property_name(k): v for k, v in settings.registry.items()}
        schemas = RegisteredSchemas(settings.schema_registry_url, properties)
    signing = PolicySigning(settings.worker_keys(Purpose.POLICIES), settings.policies == "signed")
    return TenantPolicies(session.cluster(), settings.cluster.topic_prefix, schemas, signing)


class HttpPolicies:
    """Policies behind a worker's HTTP port; each call is at least one request."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def all(self) -> dict[str, TenantPolicy]:
        """Every tenant's policy by name, of those that the key is bound to."""
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = self._remote.get("/v1/tenants", limit=PAGE, cursor=cursor, policy="true")
            names += page["tenants"]
            cursor = page["cursor"]
            if cursor is None:
                break
        found = {name: self.get(name) for name in names}
        return {name: policy for name, policy in found.items() if policy is not None}

    def get(self, tenant: str) -> TenantPolicy | None:
        """The policy of a tenant, or None for one that has none."""
        from belfry.client.policy_fields import policy_from

        try:
            return policy_from(self._remote.get(tenant_path(tenant)))
        except CommandError as error:
            if error.exit_code == Exit.NOT_FOUND:
                return None
            raise

    def put(
        self, *policies: TenantPolicy, share_topic: bool = False, reason: str | None = None
    ) -> None:
        """Write policies; the worker works out the former spreads of a tenant without a policy."""
        for policy in policies:
            fields: dict[str, Any] = asdict(policy)
            del fields["tenant"]
            if not policy.former_spreads and self.get(policy.tenant) is None:
                del fields["former_spreads"]
            shares = {"share_topic": "true"} if share_topic else {}
            query = _query(shares | _because(reason))
            self._remote.ask("PUT", tenant_path(policy.tenant) + query, fields)

    def remove(self, tenant: str, *, reason: str | None = None) -> None:
        """Forget a tenant's policy."""
        self._remote.ask("DELETE", tenant_path(tenant) + _query(_because(reason)))

    def to_destroy(self, removed: TenantPolicy | None) -> KeyToDestroy | None:
        """The secret that a removed policy leaves to its operator; ask before it is removed."""
        from belfry.tenants.shredding import KeyToDestroy

        if removed is None or removed.payload_key_ref is None:
            return None
        found = self._remote.get(f"{tenant_path(removed.tenant)}/payload-keys", alone="true")
        return KeyToDestroy(removed.payload_key_ref, tuple(found["shared_with"]))

    def is_known(self, _tenant: str) -> bool:
        """Left to the worker, which knows better."""
        return False


def _because(reason: str | None) -> dict[str, str]:
    """The reason as a part of a query."""
    return {} if reason is None else {"reason": reason}


def _query(given: dict[str, str]) -> str:
    """A query behind a path, empty where it says nothing."""
    return f"?{urlencode(given)}" if given else ""
