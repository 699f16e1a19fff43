"""`/v1/tenants/{tenant}`: policies, which are records of `belfry.tenants`.

Reads come from this worker's copy of the topic; a write is answered once this worker has read it
back, and every other worker does so within two seconds.

    12:00:00.00  PUT /v1/tenants/shop, by the tenant's own admin
    12:00:00.00  the topic is read to its end: the change begins with the latest policy
    12:00:00.05  rights: a field of the platform's would change ─► 403 with its name
    12:00:00.06  the policy is written, and acknowledged by all replicas
    12:00:00.40  this worker has read it back ─► 200 with the whole policy

Changes through one worker go one after the other. Two workers may be asked at the same moment, and
then the later record counts, as it does for commands.

A policy has two parts. The platform's part, such as quotas, is set by callers that operate all
tenants; the other by the tenant's own admins, too. A body that leaves a field out means the
default, except that an admin of the tenant leaves the platform's part as it is. If Kafka does not
confirm a write, the answer is 503 `not_written`, and if this worker does not read it back in
`FOLLOWED_S` seconds, 503 `not_followed`: the policy is written then. Writing blocks, so it runs in
a thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import MISSING, asdict, fields
from http import HTTPStatus
from typing import Annotated, Any, Final, get_type_hints

import orjson
from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, Field, create_model
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.credentials import warned_of_policy
from belfry.api.json.document import body_of, problems, with_answer
from belfry.api.json.queries import Why
from belfry.api.json.values import Strict
from belfry.api.notes import note
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName, parsed
from belfry.api.routes.payload_key_routes import RemovalAnswer, removal_answer
from belfry.api.routes.policy_changes import (
    check_removal,
    check_rights,
    check_seen,
    followed,
    no_policy,
    policy_now,
    policy_tag,
    written,
)
from belfry.api.workers.parts import ApiDependencies
from belfry.client.policy_fields import changed
from belfry.schedules.masking import masked_target
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_rights import PLATFORMS


def _fields() -> dict[str, Any]:
    """Fields of a policy, but for the tenant's name, with the schema's defaults."""
    kinds = get_type_hints(TenantPolicy)
    found = [each for each in fields(TenantPolicy) if each.default is not MISSING]
    return {each.name: (kinds[each.name], each.default) for each in found}


PolicyBody: Final[type[Strict]] = create_model(
    "PolicyBody",
    __base__=Strict,
    __doc__="A policy; a field that is left out has its default.",
    **_fields(),
)
PolicyAnswer: Final[type[BaseModel]] = create_model(
    "PolicyAnswer", __doc__="A tenant's policy.", tenant=(str, ...), **_fields()
)


class Setting(Why):
    """How a policy is set."""

    share_topic: bool = Field(
        False, description="Allow the output_topic of another tenant's policy."
    )


class RemovalOptions(Why):
    """The treatment of pending schedules."""

    cancel_pending: bool = Field(
        False,
        description="Refuse the tenant's requests from now on, and cancel its pending schedules.",
    )


class SeenPolicy(BaseModel):
    """The policy that a change begins with."""

    if_match: str | None = Field(
        None, max_length=100, description="The ETag that the policy has to have."
    )


SettingQuery = Annotated[Setting, Query()]
SeenPolicyHeader = Annotated[SeenPolicy, Header()]
RemovalQuery = Annotated[RemovalOptions, Query()]


def tenant_routes(parts: ApiDependencies, callers: Callers) -> APIRouter:
    """Routes of policies: one looks, one sets, one removes."""
    routes = APIRouter(prefix="/v1", tags=["tenants"])
    _listing(routes, parts, callers)
    # A change begins with what is followed, so the one before has to be followed by then.
    turn = asyncio.Lock()
    _setting(routes, parts, callers, turn)
    _removing(routes, parts, callers, turn)
    return routes


def _listing(routes: APIRouter, parts: ApiDependencies, callers: Callers) -> None:
    """The route that shows a policy."""

    @routes.get(
        "/tenants/{tenant}",
        response_model=None,
        responses={**with_answer(PolicyAnswer, 200), **problems(404, 422, 429, 503)},
    )
    async def policy(tenant: TenantName, caller: Principal = callers.who(Role.READ)) -> Response:
        """A tenant's policy; 404 if it has none and is treated by the defaults.

        The role `read` sees no values of targets' headers and no queries of their addresses.
        """
        found = parts.ready.policies.policy(tenant)
        if found is None:
            raise no_policy(tenant)
        shown = asdict(found)
        if not caller.may(Role.SCHEDULE):
            shown["http_targets"] = [masked_target(each) for each in shown["http_targets"]]
            return _sent(shown)
        return _sent(shown, policy_tag(found))


def _setting(
    routes: APIRouter, parts: ApiDependencies, callers: Callers, turn: asyncio.Lock
) -> None:
    """The route that sets one. A tenant's own admin sets its part and leaves the platform's as it
    is.
    """

    @routes.put(
        "/tenants/{tenant}",
        response_model=None,
        responses={
            **with_answer(PolicyAnswer, 200),
            **problems(400, 412, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(PolicyBody),
    )
    async def put(
        request: Request,
        tenant: TenantName,
        query: SettingQuery,
        seen: SeenPolicyHeader,
        caller: Principal = callers.who(Role.ADMIN),
    ) -> Response:
        """Set a tenant's policy as a whole; a caller with rights to a part leaves the rest.

        With `If-Match` it counts only if the policy still has the ETag that was given with it.
        """
        note().because(query.reason)
        body = await parsed(request, PolicyBody)
        policies = parts.ready.policies
        # `former_spreads` says where schedules may still live, so a body without it does not empty
        # it.
        kept = ("former_spreads",) if caller.is_platform else PLATFORMS
        left_out = set(kept) - body.model_fields_set
        given = {n: getattr(body, n) for n in type(body).model_fields if n not in left_out}

        def write() -> TenantPolicy:
            before = policy_now(policies, caller, tenant, newest=seen.if_match is not None)
            check_seen(seen.if_match, before)
            used = before is not None or policies.is_used(tenant)
            after = changed(before or TenantPolicy(tenant), given, used=used)
            note().policy(before, after)
            check_rights(caller, before or TenantPolicy(tenant), after, shares=query.share_topic)
            policies.put(after, share_topic=query.share_topic, reason=query.reason)
            return after

        async with turn:
            after = await written(write)
            await followed(lambda: policies.policy(tenant) == after)
        return warned_of_policy(_sent(asdict(after), policy_tag(after)), after.http_targets)


def _removing(
    routes: APIRouter, parts: ApiDependencies, callers: Callers, turn: asyncio.Lock
) -> None:
    """The route that removes one, or that ends a tenant with all that is pending."""

    @routes.delete(
        "/tenants/{tenant}",
        status_code=HTTPStatus.NO_CONTENT,
        response_model=None,
        responses={**with_answer(RemovalAnswer, 200), **problems(404, 409, 422, 429, 503)},
    )
    async def remove(
        tenant: TenantName, query: RemovalQuery, caller: Principal = callers.who(Role.ADMIN)
    ) -> Response:
        """Remove a policy: the tenant is treated by the defaults, or, where unknown tenants are
        not served, waits. 200 where payloads were encrypted: with the secret to destroy."""
        note().because(query.reason)
        policies = parts.ready.policies
        async with turn:
            stands = await written(lambda: policy_now(policies, caller, tenant))
            before = stands or TenantPolicy(tenant)
            if query.cancel_pending:
                gone = changed(before, {"removed": True}, used=True)
                note().policy(stands, gone)
                check_rights(caller, before, gone)
                await written(lambda: policies.put(gone, reason=query.reason))
                await followed(lambda: policies.policy(tenant) == gone)
            else:
                note().policy(stands, None)
                check_removal(tenant, stands)
                check_rights(caller, before, TenantPolicy(tenant))
                await written(lambda: policies.remove(tenant, reason=query.reason))
                await followed(lambda: policies.policy(tenant) is None)
        left = await removal_answer(policies, caller, stands)
        return _sent(left.model_dump()) if left else Response(status_code=HTTPStatus.NO_CONTENT)


def _sent(told: dict[str, Any], tag: str | None = None) -> Response:
    """A policy as an answer, with its ETag where the caller may see all of it."""
    headers = None if tag is None else {"etag": tag}
    return Response(orjson.dumps(told), HTTPStatus.OK, headers, "application/json")
