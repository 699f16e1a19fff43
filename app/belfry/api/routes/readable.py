"""Requests and payloads made readable: bytes that others wrote.

    GET  /v1/tenants/{tenant}/requests/{place}   the request that a version of a schedule came from
    POST /v1/decode                              Avro by the schema that its first bytes name

Histories tell the place of each request, so two of them show what a new version changed.  A request
is there for as long as its topic keeps it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import body_of, problems
from belfry.api.json.queries import Known
from belfry.api.json.shapes import bytes_json, moment
from belfry.api.json.values import Strict
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName, parsed
from belfry.api.routes.topic_reads import PLACE, TopicReads, readable_fields
from belfry.api.workers.kept import UnreadableValue
from belfry.api.workers.parts import ApiDependencies
from belfry.schedules.field import Form
from belfry.schedules.fields import FIELDS

RequestPlace = Annotated[
    str, Path(pattern=PLACE, description="`source_partition` and `source_offset` of its verdict.")
]


class AskedFor(Known):
    """Where the request was received."""

    topic: str | None = Field(
        None, max_length=249, description="`source_topic` of its verdict; no other one is read."
    )


RequestQuery = Annotated[AskedFor, Query()]


class AskedForAnswer(BaseModel):
    """A request as it was received."""

    tenant: str
    schedule_id: str
    request: dict[str, Any] = Field(
        description="Its fields that say something, in the names of bodies; credentials are masked."
        " Of a key, a payload or the value of a header that is longer than 2 048 bytes, and of more"
        " than 50 headers, the beginning is shown, beside `…_size_bytes` and `…_sha256` of the"
        " whole."
    )


class DecodeBody(Strict):
    """Bytes to decode."""

    value_base64: str = Field(max_length=2_000_000)


class DecodedAnswer(BaseModel):
    """The content of the bytes."""

    avro_schema: str = Field(description="Full name of the writer's schema.")
    value: Any = Field(description="The value; bytes in it as text, or as base64.")


def readable_routes(parts: ApiDependencies, callers: Callers) -> APIRouter:
    """Routes that make bytes of others readable."""
    routes = APIRouter(prefix="/v1", tags=["kept"])
    reads = TopicReads(parts)

    @routes.get("/tenants/{tenant}/requests/{place}", responses=problems(404, 422, 429, 503))
    async def asked_for(
        tenant: TenantName,
        place: RequestPlace,
        query: RequestQuery,
        _caller: Principal = callers.who(Role.READ),
    ) -> AskedForAnswer:
        """The request of a tenant that lies at this place of the request topic."""
        partition, _, offset = place.partition("-")
        where = int(partition), int(offset)
        found = await reads.run(partial(reads.parts.kept.request, tenant, query.topic, where))
        if found is None:
            detail = f"No request of tenant {tenant} lies at {place}, or it is kept no longer."
            raise Problem(HTTPStatus.NOT_FOUND, detail, "not_found")
        return AskedForAnswer(
            tenant=tenant, schedule_id=found["schedule_id"], request=_definition(found)
        )

    @routes.post(
        "/decode",
        responses=problems(400, 413, 415, 422, 429, 503),
        openapi_extra=body_of(DecodeBody),
    )
    async def decode(
        request: Request, _caller: Principal = callers.who(Role.READ)
    ) -> DecodedAnswer:
        """The content of bytes by the Avro schema that they name: Confluent's prefix, or C3 01."""
        body = await parsed(request, DecodeBody)
        try:
            raw = b64decode(body.value_base64, validate=True)
            found = await reads.run(partial(reads.parts.kept.avro, raw))
        except ValueError:
            raise _refused("value_base64 is no base64.", "bad_body") from None
        except UnreadableValue as error:
            raise _refused(str(error), "not_decoded") from None
        return DecodedAnswer(avro_schema=found.schema, value=_as_json(found.value))

    return routes


def _definition(request: Any) -> dict[str, Any]:
    """The fields of a request in the names of bodies, instants as text."""
    found: dict[str, Any] = {}
    for name, value in request.items():
        if name in ("tenant", "schedule_id"):
            continue
        if isinstance(value, bytes):
            found |= bytes_json(name, value)
        elif isinstance(value, int) and name in FIELDS and FIELDS[name].form is Form.INSTANT:
            found[name] = moment(value)
        else:
            found[name] = readable_fields(value)
    return found


def _as_json(value: Any) -> Any:
    """A value of Avro as JSON has it."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, list) else value


def _refused(detail: str, code: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, code)
