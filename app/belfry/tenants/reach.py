"""Whether a tenant may have these targets: by its policy's hosts and secrets, and by topics."""

from __future__ import annotations

from typing import Any, Final

from belfry.schedules.header_secrets import reach_problem
from belfry.schedules.rejections import Rejection
from belfry.schedules.target_kinds import is_allowed, kind_of, place_of
from belfry.schedules.target_kinds.kind import Judge
from belfry.schedules.targets import target_of
from belfry.tenants.policy import TenantPolicy

# Of a list that an answer shows.
MAX_SHOWN: Final = 200


def reach_of_targets_problem(
    targets: list[dict[str, Any]], policy: TenantPolicy, judge: Judge
) -> Rejection | None:
    """Why a tenant may not have these targets, or None.

    By its policy's hosts and secrets, or by whose topics they are.
    """
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
