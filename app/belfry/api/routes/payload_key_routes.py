"""Keys of payloads, as workers hold them; and the answer on them when a tenant is removed.

    DELETE /v1/tenants/clinic                 200: the secret that the operator has to destroy
    GET    /v1/tenants/clinic/payload-keys    whether any worker uses its keys, or could read them

No secret is ever in an answer: a key is told by its id, which its ciphertext shows as well. The
worker that is asked asks all others, each for itself alone. One that does not answer, or tells no
address, is named in `silent`, and then nobody knows whether it still has the keys.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role, forbidden
from belfry.api.json.document import problems
from belfry.api.json.queries import Known
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName
from belfry.api.workers.everyone import Others, ask_others, no_others
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.view import WorkerView
from belfry.policies.policy_client import PolicyClient
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.shredding import check_command, destroy_advice

MOST_REFERENCES: Final = 20


class ToDestroy(BaseModel):
    """A secret that encrypted payloads of a tenant that was removed."""

    reference: str = Field(description="Where it is, on each worker.")
    key_ids: list[str] = Field(description="Keys that this worker makes of it now; no secrets.")
    shared_with: list[str] = Field(description="Tenants whose policies name it as well.")
    advice: str = Field(description="What to do, in words.")
    check: str = Field(description="The command that counts what can be read after that.")


class RemovalAnswer(BaseModel):
    """The secret that a removed policy leaves to its operator."""

    tenant: str
    destroy: ToDestroy


class KeysAsked(Known):
    """Which secrets are looked at, and who is to answer."""

    reference: list[Annotated[str, Field(max_length=1000)]] = Field(
        default_factory=list,
        max_length=MOST_REFERENCES,
        description="Places of secrets, besides the one that the policy names.",
    )
    alone: bool = Field(False, description="The worker that is asked, without asking the others.")


class ReadableSecret(BaseModel):
    """A secret that lies at a worker, and the keys that can be made of it for the tenant.

    Without those that exist and cannot be read as a secret.
    """

    reference: str
    key_ids: list[str]


class WorkerKeys(BaseModel):
    """The tenant's keys at one worker."""

    worker_id: str
    in_use: bool = Field(description="Whether it encrypts and decrypts with keys of the tenant.")
    readable: list[ReadableSecret] = Field(description="Secrets that it could read if asked to.")


class WorkersKeys(BaseModel):
    """A tenant's keys at all workers."""

    tenant: str
    shared_with: list[str] = Field(
        description="Tenants whose policies name the secret that this one's policy names."
    )
    workers: list[WorkerKeys]
    silent: list[str] = Field(description="Workers that did not answer in time.")


KeysQuery = Annotated[KeysAsked, Query()]


async def removal_answer(
    policies: PolicyClient, caller: Principal, removed: TenantPolicy | None
) -> RemovalAnswer | None:
    """The answer on a policy that was removed; None if its payloads were not encrypted.

    Keys are the platform's, as in each policy, so only its operators learn of other tenants.
    """
    key = await asyncio.to_thread(policies.to_destroy, removed)
    if key is None or removed is None or not caller.is_platform:
        return None
    tenant = removed.tenant
    ids = await asyncio.to_thread(policies.key_ids, tenant, key.reference)
    return RemovalAnswer(
        tenant=tenant,
        destroy=ToDestroy(
            reference=key.reference,
            key_ids=list(ids or ()),
            shared_with=list(key.shared_with),
            advice=destroy_advice(tenant, key),
            check=check_command(tenant, key),
        ),
    )


def payload_key_routes(view: WorkerView, parts: ApiDependencies, callers: Callers) -> APIRouter:
    """The route that says which workers have keys of a tenant."""
    routes = APIRouter(prefix="/v1", tags=["tenants"])

    @routes.get("/tenants/{tenant}/payload-keys", responses=problems(403, 422, 429, 503))
    async def payload_keys(
        tenant: TenantName, query: KeysQuery, caller: Principal = callers.who(Role.OPERATE)
    ) -> WorkersKeys:
        """Which workers use keys of a tenant's payloads, or could read the secrets of such keys;
        for operators of all tenants.
        """
        if not caller.is_platform:
            raise forbidden(
                f"{caller.name} does not operate all tenants (*), whose secrets may be asked for."
            )
        mine = await asyncio.to_thread(_of_worker, view, parts, tenant, query.reference)
        others: Others[WorkersKeys] = no_others()
        if not query.alone:
            asked: list[tuple[str, Any]] = [("reference", each) for each in query.reference]
            path = f"/v1/tenants/{quote(tenant, safe='')}/payload-keys"
            target = Target("GET", path, urlencode([*asked, ("alone", "true")]))
            unasked = _unasked(view)
            others = await ask_others(view, parts, caller, target, WorkersKeys)
            others.silent.extend(unasked)
        told = [mine, *(each for answer in others.told.values() for each in answer.workers)]
        policies = parts.ready.policies
        key = await asyncio.to_thread(policies.to_destroy, policies.policy(tenant))
        shared = [] if key is None else list(key.shared_with)
        return WorkersKeys(tenant=tenant, shared_with=shared, workers=told, silent=others.silent)

    return routes


def _unasked(view: WorkerView) -> list[str]:
    """Workers that cannot be asked, since they tell no address; raises `Problem` (503).

    A worker that is not in the group, or has just joined, does not know the others, and must not
    answer for them.
    """
    entries, mine = view.assignment_map().entries, view.identity.worker_id
    if all(each.worker != mine for each in entries):
        detail = "This worker does not know the others yet: ask again, or another one."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
    return [each.worker for each in entries if not each.http and each.worker != mine]


def _of_worker(
    view: WorkerView, parts: ApiDependencies, tenant: str, asked: list[str]
) -> WorkerKeys:
    """The keys at this worker; reads files, so it blocks."""
    policies = parts.ready.policies
    policy = policies.policy(tenant)
    named = [] if policy is None or policy.payload_key_ref is None else [policy.payload_key_ref]
    found = {each: policies.key_ids(tenant, each) for each in (*named, *asked)}
    return WorkerKeys(
        worker_id=view.identity.worker_id,
        in_use=parts.ready.holdings.payload_keys(tenant) is not None,
        readable=[
            ReadableSecret(reference=reference, key_ids=list(ids))
            for reference, ids in found.items()
            if ids is not None
        ],
    )
