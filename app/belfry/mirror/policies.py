"""Policies of tenants, carried as values: each side signs its own, for the place where it lies.

They are compared and written, and not copied record by record. A policy may be written twice
without harm, so this needs no transaction.
"""

from __future__ import annotations

from collections.abc import Callable

from belfry.client.kafka import Cluster
from belfry.client.schemas import RegisteredSchemas
from belfry.client.tenants import PolicySigning, TenantPolicies
from belfry.settings import SharedSettings, property_name
from belfry.wire.worker_keys import Purpose


def policies_in(settings: SharedSettings) -> TenantPolicies:
    """The policies of one side."""
    schemas = None
    if settings.schema_registry_url is not None:
        properties = {property_name(k): v for k, v in settings.registry.items()}
        schemas = RegisteredSchemas(settings.schema_registry_url, properties)
    signing = PolicySigning(settings.worker_keys(Purpose.POLICIES), settings.policies == "signed")
    given = settings.kafka_properties()
    cluster = Cluster(given.pop("bootstrap.servers"), given)
    return TenantPolicies(cluster, settings.cluster.topic_prefix, schemas, signing)


def carry_policies(
    source: TenantPolicies, target: TenantPolicies, check: Callable[[], None] = lambda: None
) -> int:
    """Make the target's policies those of the source; how many were changed.

    `check` is called right before something is changed, and raises where the target is no longer
    to be changed. Raises `BelfryError` where a side does not answer.
    """
    theirs, mine = source.all(), target.all()
    changed = [policy for name, policy in theirs.items() if mine.get(name) != policy]
    gone = [name for name in mine if name not in theirs]
    if changed or gone:
        check()
    if changed:
        # A tenant that shares a topic in the source shares it here.
        target.put(*changed, share_topic=True, reason="belfry mirror")
    for name in gone:
        target.remove(name, reason="belfry mirror")
    return len(changed) + len(gone)
