"""The rights of a tenant: the fields of its policy that it may set, the targets it may have.

A tenant may set fields that only concern its own events. The platform sets fields that cost other
tenants something, or reach what belongs to others: topics, quotas, turns, hosts, secrets, where
schedules live. Every field of a policy stands in the table `SET_BY`, so that no new field is open
to tenants by oversight.

The platform's fields bound the targets: `reach_of_targets_problem` says why a tenant may not have a
target, by the hosts and secrets of its policy, and by the owner of the target's topic.

    the tenant's admin sets   http_targets: https://hooks.example.com/x
    the platform allows it    allowed_hosts: *.example.com
    refused                   https://other.example/x      target_not_allowed, where it is set, and
                                                           in each request that names it

The HTTP API calls `platform_changes` before it carries out a change by a tenant's own
administrator.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from belfry.schedules.header_secrets import reach_problem
from belfry.schedules.rejections import Rejection
from belfry.schedules.target_kinds import is_allowed, kind_of, place_of
from belfry.schedules.target_kinds.kind import Judge
from belfry.schedules.targets import target_of
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_references import NO_TARGETS

# The most characters of a list in an answer.
MAX_SHOWN: Final = 200


class Setter(StrEnum):
    """Who sets a field: the tenant's own administrator and the platform, or the platform alone."""

    TENANT = "tenant"
    PLATFORM = "platform"


SET_BY: Final[dict[str, Setter]] = {
    "output_topic": Setter.PLATFORM,
    "delivery": Setter.TENANT,
    "cloudevents": Setter.TENANT,
    "guarantee": Setter.TENANT,
    "spread": Setter.PLATFORM,
    "lifecycle": Setter.TENANT,
    "misfire": Setter.TENANT,
    "look_back_ms": Setter.TENANT,
    "max_pending": Setter.PLATFORM,
    "max_requests_per_second": Setter.PLATFORM,
    "max_fires_per_second": Setter.PLATFORM,
    "priority": Setter.PLATFORM,
    "history_ms": Setter.PLATFORM,
    "paused": Setter.TENANT,
    "http_targets": Setter.TENANT,
    "retry_max_attempts": Setter.TENANT,
    "retry_initial_ms": Setter.TENANT,
    "retry_max_ms": Setter.TENANT,
    "retry_max_age_ms": Setter.TENANT,
    "allowed_hosts": Setter.PLATFORM,
    "former_spreads": Setter.PLATFORM,
    "removed": Setter.PLATFORM,
    "signing_secret_ref": Setter.PLATFORM,
    "secret_refs": Setter.PLATFORM,
    "output": Setter.PLATFORM,
    "remember_ms": Setter.TENANT,
    "payload_key_ref": Setter.PLATFORM,
    "source_header": Setter.TENANT,
    "claim_check_over_bytes": Setter.PLATFORM,
}


TENANTS: Final = tuple(name for name, setter in SET_BY.items() if setter is Setter.TENANT)


PLATFORMS: Final = tuple(name for name, setter in SET_BY.items() if setter is Setter.PLATFORM)


def platform_changes(before: TenantPolicy, after: TenantPolicy) -> list[str]:
    """Fields of the platform's in which two policies of a tenant differ, in the schema's order.

    Empty if the tenant's own administrator may make the change.
    """
    return [name for name in PLATFORMS if getattr(before, name) != getattr(after, name)]


def reach_of_targets_problem(
    targets: list[dict[str, Any]], policy: TenantPolicy, judge: Judge
) -> Rejection | None:
    """Why a tenant may not have these targets, or None.

    The hosts, secrets and keys for payloads of its policy decide that, and the owners of topics.
    """
    if targets and policy.payload_key_ref is not None:
        return Rejection("target_not_allowed", NO_TARGETS)
    for target in map(target_of, targets):
        place = place_of(target)
        refused = kind_of(target).refused(place, judge)
        if refused is not None:
            return Rejection("target_not_allowed", refused)
        if not is_allowed(target, policy.allowed_hosts):
            return Rejection(
                "target_not_allowed",
                f"Host {place!r} of a target is none that the policy of tenant"
                f" {policy.tenant} allows ({', '.join(policy.allowed_hosts)[:MAX_SHOWN]}): use one"
                " of those, or ask for it in allowed_hosts.",
            )
        why = reach_problem(target.headers, policy.secret_refs, policy.allowed_hosts)
        if why is not None:
            return Rejection("target_not_allowed", why)
    return None
