"""A change of a policy: its base, the rights for it, and when it is done.

The routes of `tenants.py` go through these steps, in this order:

    `policy_now`     the policy that the change begins with, read anew where it is compared
    `check_seen`     it is the one that the caller has looked at: else 412 `changed`
    `check_rights`   the caller may set the changed fields: else 403, with their names
    `written`        the record is acknowledged by all replicas: else 503 `not_written`
    `followed`       this worker has read it back: else 503 `not_followed`, and it is written

Rights are judged by the changed fields and not by the sent ones, so a caller may give a policy back
as it was shown. Both checks come before the write and in its thread, since they need the latest
policy, which may have to be read. The caller ends one change before it begins the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from http import HTTPStatus
from time import monotonic
from typing import Final, TypeVar

import orjson

from belfry.api.auth.principal import Principal, forbidden
from belfry.api.problems import Problem
from belfry.api.workers.parts import RETRY_SOON
from belfry.client.errors import Unavailable
from belfry.client.policy_fields import BadPolicy, removal_problem
from belfry.policies.policy_client import PolicyClient
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_rights import TENANTS, platform_changes

# The right to set all of a policy, in words.
PLATFORM: Final = "the role operate for all tenants (*)"
# Seconds until this worker has to have read the policy back, and between two looks.
FOLLOWED_S: Final = 5.0
LOOK_S: Final = 0.02
T = TypeVar("T")


def policy_now(
    policies: PolicyClient, caller: Principal, tenant: str, *, newest: bool = False
) -> TenantPolicy | None:
    """The policy that a change begins with, `newest` where it is compared; blocks.

    A caller without the right to set all of it must not undo fields that the platform has set a
    moment ago, nor fields that this worker cannot read.  Where unknown tenants are not served, a
    policy lets its tenant in.
    """
    if newest or not caller.is_platform:
        policies.catch_up(tenant)
    if not caller.is_platform and policies.closed and policies.policy(tenant) is None:
        raise forbidden(
            f"Tenant {tenant} has no policy, and unknown tenants are not served: its first one"
            f" lets it in, which takes {PLATFORM}."
        )
    return policies.policy(tenant)


def check_rights(
    caller: Principal, before: TenantPolicy, after: TenantPolicy, *, shares: bool = False
) -> None:
    """Refuse a change of the platform's fields by other callers; raises `Problem`.

    `before` and `after` are compared field by field, so giving a field of the platform's as it is
    does no harm. `shares` says that the caller asks for another tenant's topic, which is the
    platform's too. The answer (403) names the fields in `fields`.
    """
    if caller.is_platform:
        return
    refused = platform_changes(before, after)
    if shares:
        refused.append("share_topic")
    if refused:
        detail = (
            f"{caller.name} may not change {', '.join(refused)} of {after.tenant}: that takes"
            f" {PLATFORM}. It may set {', '.join(TENANTS)}; leave out the others, or give them as"
            " they are."
        )
        raise Problem(HTTPStatus.FORBIDDEN, detail, "forbidden", fields=refused)


def policy_tag(policy: TenantPolicy) -> str:
    """The ETag of a policy: the same wherever and whenever it says the same.

    It covers headers of targets as well, so only a caller that may see those gets it.
    """
    return f'"{sha256(orjson.dumps(asdict(policy))).hexdigest()[:32]}"'


def check_seen(if_match: str | None, stands: TenantPolicy | None) -> None:
    """Refuse a change of another policy than the one that was looked at; raises `Problem`."""
    if if_match is None or (stands is not None and if_match.strip() == policy_tag(stands)):
        return
    detail = (
        "The policy is not the one that was looked at: look at it again, and decide anew."
        if stands is not None
        else "The tenant has no policy: to make its first one, leave If-Match out."
    )
    raise Problem(HTTPStatus.PRECONDITION_FAILED, detail, "changed")


def check_removal(tenant: str, policy: TenantPolicy | None) -> None:
    """Raise `Problem` where there is no policy, or one that says where schedules live."""
    if policy is None:
        raise no_policy(tenant)
    problem = removal_problem(policy)
    if problem is not None:
        raise Problem(HTTPStatus.CONFLICT, problem, "spread")


async def written(write: Callable[[], T]) -> T:
    """Run a write in a thread; its errors become problems (422 and 503)."""
    try:
        return await asyncio.to_thread(write)
    except BadPolicy as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), "bad_policy") from None
    except Unavailable as error:
        detail = f"The policy was not written: {error}"
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "not_written", RETRY_SOON) from None


async def followed(holds: Callable[[], bool]) -> None:
    """Wait until this worker treats the tenant so; raises `Problem` (503) after `FOLLOWED_S`
    seconds.
    """
    deadline = monotonic() + FOLLOWED_S
    while not holds():
        if monotonic() > deadline:
            detail = "The policy was written, and this worker has not read it yet. Look again."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "not_followed", RETRY_SOON)
        await asyncio.sleep(LOOK_S)


def no_policy(tenant: str) -> Problem:
    """The problem of a tenant without a policy."""
    detail = f"Tenant {tenant} has no policy: it is treated by the defaults."
    return Problem(HTTPStatus.NOT_FOUND, detail, "no_policy")
