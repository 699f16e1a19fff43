"""Refused requests: their content as far as it can be read, and why they were refused.

    GET /v1/tenants/shop/rejections     those of one tenant, the latest first
    GET /v1/rejections                  all, also those whose tenant is unknown

A tenant sees its own records alone. A request that cannot be decoded has no tenant that could be
believed, so it is shown only to a caller that is bound to all tenants (`*`).

A refused request may be anything, and may hold anything. So it is shown as far as it can be read:
its fields where it is a request, else the beginning of its bytes; the reader of the topic leaves
out parts that may be credentials (`workers/kept.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role, forbidden
from belfry.api.json.cursors import question
from belfry.api.json.document import problems
from belfry.api.json.schedule_answers import HeaderAnswer
from belfry.api.json.shapes import bytes_json
from belfry.api.json.worker_answers import instant
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName
from belfry.api.routes.topic_reads import (
    CURSOR_DOC,
    EXAMINED_DOC,
    KeptAsked,
    KeptQuery,
    TopicReads,
    older,
    readable_fields,
)
from belfry.api.workers.kept import RejectedRequest


class RejectedAnswer(BaseModel):
    """A refused request, as far as it can be read and without possible credentials."""

    at: str = Field(description="When it was refused.")
    tenant: str | None = Field(description="Null if its tenant is unknown.")
    # As the verdict had it, such as `bad_fields`; `reason` is a sentence for people.
    code: str
    reason: str
    topic: str = Field(description="Where it was first received.")
    partition: int | None
    offset: int | None
    # Of the whole value, of which `sample_text` or `sample_base64` may be the beginning.
    size_bytes: int
    # The key as text where it is UTF-8, else as base64; neither for a record without a key.
    key_text: str | None = None
    key_base64: str | None = None
    headers: list[HeaderAnswer] = Field(description="As received; the first 50.")
    request: dict[str, Any] | None = Field(description="Its fields, where it can be read.")
    sample_text: str | None = None
    sample_base64: str | None = Field(None, description="Else the beginning of its value.")


class RejectionsAnswer(BaseModel):
    """Refused requests, the latest first."""

    rejections: list[RejectedAnswer]
    examined: int = Field(description=EXAMINED_DOC)
    cursor: str | None = Field(description=CURSOR_DOC)


def rejection_routes(reads: TopicReads, callers: Callers) -> APIRouter:
    """Routes of refused requests."""
    routes = APIRouter(prefix="/v1", tags=["kept"])

    @routes.get("/rejections", responses=problems(422, 429, 503))
    async def rejections(
        query: KeptQuery, caller: Principal = callers.who(Role.READ)
    ) -> RejectionsAnswer:
        """All refused requests, also those without a tenant; for callers bound to all (`*`)."""
        if not caller.reaches_all:
            raise forbidden(
                f"{caller.name} is bound to some tenants: ask for the rejections of one of them."
            )
        return await _rejected(reads, None, query)

    @routes.get("/tenants/{tenant}/rejections", responses=problems(422, 429, 503))
    async def of_tenant(
        tenant: TenantName, query: KeptQuery, _caller: Principal = callers.who(Role.READ)
    ) -> RejectionsAnswer:
        """Refused requests of one tenant, the latest first."""
        return await _rejected(reads, tenant, query)

    return routes


async def _rejected(reads: TopicReads, tenant: str | None, query: KeptAsked) -> RejectionsAnswer:
    """A page of refused requests: those of one tenant, or all of them if it is None."""
    asked = question("rejections", tenant)
    # The cursor is bound to the tenant, so that of one tenant is refused for another.
    before = query.before(asked)
    page = await reads.run(partial(reads.parts.kept.rejected, tenant, before))
    return RejectionsAnswer(
        rejections=[_shown_request(each) for each in page.found],
        examined=page.examined,
        cursor=older(page.rest, asked),
    )


def _shown_request(each: RejectedRequest) -> RejectedAnswer:
    """A refused request as it is answered; bytes are text where they are UTF-8, else base64."""
    topic, partition, offset = each.source
    key = {} if each.key is None else bytes_json("key", each.key)
    sample = {} if each.sample is None else bytes_json("sample", each.sample)
    return RejectedAnswer(
        at=instant(each.at_ms),
        tenant=each.tenant,
        code=each.code,
        reason=each.reason,
        topic=topic,
        partition=partition,
        offset=offset,
        size_bytes=each.size_bytes,
        headers=[HeaderAnswer(name=n, **bytes_json("value", v)) for n, v in each.headers],
        request=None if each.request is None else readable_fields(each.request),
        **key,
        **sample,
    )
