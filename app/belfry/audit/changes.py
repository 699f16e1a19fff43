"""The changed fields of a policy: their names, and their values as far as these may be shown.

    before   TenantPolicy("shop")
    after    TenantPolicy("shop", max_pending=1000, priority=-1)
    changes  max_pending: null -> 1000,  priority: 0 -> -1

Used by HTTP, which knows the caller, and by the log of the topic, which knows the result.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from belfry.schedules.masking import masked_target
from belfry.tenants.policy import TenantPolicy
from belfry.wire.audit import PolicyChange


def changes_of(before: TenantPolicy | None, after: TenantPolicy | None) -> tuple[PolicyChange, ...]:
    """Fields in which two policies differ, in the schema's order; None stands for no policy.

    A policy that begins or ends shows the fields that differ from the defaults.  Values of targets'
    headers and queries of their addresses are masked: they may be credentials.  So a change of only
    a masked value is shown as a change, with equal texts before and after.
    """
    tenant = (before or after or TenantPolicy("")).tenant
    old, new = before or TenantPolicy(tenant), after or TenantPolicy(tenant)
    return tuple(
        PolicyChange(
            each.name,
            None if before is None else _shown(each.name, getattr(old, each.name)),
            None if after is None else _shown(each.name, getattr(new, each.name)),
        )
        for each in fields(TenantPolicy)
        if getattr(old, each.name) != getattr(new, each.name)
    )


def _shown(name: str, value: Any) -> str:
    if name == "http_targets":
        value = [masked_target(asdict(target)) for target in value]
    # Refused changes are shown too, so a number may be too large for its field.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
