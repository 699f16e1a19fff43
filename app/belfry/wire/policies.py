"""`TenantPolicy` records: bytes of the topic of policies to values and back.

    belfry.tenants   key: the tenant's name   value: frame, then a body   null: no policy
                     header belfry-policy-reason: why it was written, only for the audit log

The body may be of a later release: a symbol that this one does not know reads as UNKNOWN, and
`problems` then says why the policy cannot be carried out as it is meant.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from belfry.schedules.targets import HttpTarget
from belfry.schedules.targets import target_of as http_target
from belfry.tenants.policy import TenantPolicy, problems
from belfry.wire import catalogue
from belfry.wire.catalogue import RecordReader
from belfry.wire.record import Headers

__all__ = [
    "HttpTarget",
    "TenantPolicy",
    "decode_policy",
    "encode_policy",
    "http_target",
    "policy_of",
    "problems",
    "reason_header",
    "reason_of",
]

NAME: Final = "TenantPolicy"
REASON: Final = "belfry-policy-reason"


def encode_policy(policy: TenantPolicy) -> bytes:
    """Body of a policy (no frame)."""
    targets = [_target_record(target) for target in policy.http_targets]
    return catalogue.encode(NAME, {**asdict(policy), "http_targets": targets})


def decode_policy(body: bytes, reader: RecordReader | None = None) -> TenantPolicy:
    """A policy, written with the schema of `reader` (belfry's own if none is given).

    Raises `MalformedError`; `problems` judges the policy.
    """
    return policy_of((reader or catalogue.own_reader(NAME)).read(body))


def policy_of(record: dict[str, Any]) -> TenantPolicy:
    """A policy from a decoded record."""
    targets = tuple(map(http_target, record["http_targets"]))
    lists = {
        name: tuple(record[name]) for name in ("allowed_hosts", "former_spreads", "secret_refs")
    }
    return TenantPolicy(**{**record, "http_targets": targets, **lists})


def reason_header(reason: str | None) -> Headers:
    """The header with the reason for writing a policy; none without a reason."""
    return [] if reason is None else [(REASON, reason.encode(errors="replace"))]


def reason_of(headers: Headers) -> str | None:
    """Why a policy was written, as its record says; the text may come from any writer."""
    given = next((value for name, value in headers if name == REASON), None)
    return None if given is None else given.decode(errors="replace")


def _target_record(target: HttpTarget) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in target.headers]
    return {**asdict(target), "headers": headers}
