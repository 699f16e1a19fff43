"""Refused requests, deliveries without an end, and those that were given up.

They lie in topics that all tenants share. A look goes back from the end of the topic and takes a
bounded time, so a page may be short, or empty, while older pages hold more: the cursor goes on.

    GET …/dead-letters             p0 from 10 000 back to 8 200, p1 from 90 to 0: 3 of this tenant
                                   cursor: {p0: 8 200}, for p1 holds nothing older
    GET …/dead-letters?cursor=…    p0 from 8 200 back to 6 400: none; the cursor goes on
    POST …/dead-letters/0-9120/replay   the letter at partition 0, offset 9 120, once more

A tenant sees its own records alone. Records whose tenant is not known are shown only to a caller
that is bound to all tenants (`*`). Reads block, so they run in threads (`TopicReads`). If Kafka
does not answer, neither do they: the answer is 503 with `retry-after`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from confluent_kafka import KafkaException
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role, forbidden
from belfry.api.json.cursors import bad_cursor, question, read_cursor, write_cursor
from belfry.api.json.document import problems
from belfry.api.json.queries import Known
from belfry.api.json.schedule_answers import HeaderAnswer
from belfry.api.json.shapes import bytes_json
from belfry.api.json.worker_answers import instant
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName
from belfry.api.server.threads import Threads
from belfry.api.workers.kept import Before, KeptDelivery, RejectedRequest
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.registry.answers import RegistryUnreachableError

T = TypeVar("T")

# Each has a connection to Kafka while it is under way.
MOST_LOOKS: Final = 4
# In a cursor: partition and the offset before which the next look begins.
_END: Final = struct.Struct(">HQ")
# A letter's id: partition and offset, such as 3-17042.
PLACE: Final = r"^\d{1,5}-\d{1,18}$"
_CURSOR: Final = "Give it back for older ones; null where nothing older is kept."
_EXAMINED: Final = "How many records and markers of all tenants were looked at for it."


class RejectedAnswer(BaseModel):
    """A refused request, as far as it can be read and without what may be a credential."""

    at: str = Field(description="When it was refused.")
    tenant: str | None = Field(description="Null where nobody knows whose it is.")
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
    examined: int = Field(description=_EXAMINED)
    cursor: str | None = Field(description=_CURSOR)


class DeliveryAnswer(BaseModel):
    """A delivery that was given up, or has no end."""

    id: str | None = Field(description="Its place, to replay it; null where it was not given up.")
    tenant: str
    schedule_id: str
    fire_id: str
    at: str = Field(description="When it was given up, or when its latest attempt was asked for.")
    fired_at: str
    state: str = Field(
        description="`given_up`; `waiting` for a dispatcher; `retrying`; `attempted` where its end"
        " may lie too far back to be seen."
    )
    code: str
    reason: str
    attempt: int
    attempts: int = Field(description="How many there are at most.")
    targets: list[str] = Field(description="Addresses, without their queries.")


class DeadLettersAnswer(BaseModel):
    """Deliveries that were given up, the latest first."""

    deliveries: list[DeliveryAnswer]
    examined: int = Field(description=_EXAMINED)
    cursor: str | None = Field(description=_CURSOR)


class OpenDeliveriesAnswer(BaseModel):
    """Deliveries without an end, among the latest 2 000 of each partition; at most 200."""

    deliveries: list[DeliveryAnswer]
    examined: int = Field(description=_EXAMINED)


class ReplayAnswer(BaseModel):
    """A delivery is on its way again."""

    # Always 1: nothing to replay is 404.
    replayed: int


class KeptAsked(Known):
    """From where on to look."""

    cursor: str | None = Field(None, max_length=2000, description="Of the page before.")


KeptQuery = Annotated[KeptAsked, Query()]
LetterId = Annotated[str, Path(pattern=PLACE, description="`id` of a delivery.")]


class TopicReads:
    """Reads of topics in threads of few; belongs to one event loop.

    `parts.kept` reads Kafka behind it, and is there once the worker is connected.
    """

    def __init__(self, parts: ApiDependencies) -> None:
        self.parts = parts
        self._threads = Threads("looks at topics", MOST_LOOKS)

    async def run(self, look: Callable[[], T]) -> T:
        """What a look returns; raises `Problem` where Kafka, or the registry, does not answer.

        It raises the same (503) where `MOST_LOOKS` looks are under way already.
        """
        try:
            return await self._threads.run(look)
        except (ConnectionError, KafkaException) as error:
            detail = f"Kafka did not answer ({error}): try again."
        except RegistryUnreachableError as error:
            detail = f"{error}. Try again."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "unavailable", RETRY_SOON)


def kept_routes(parts: ApiDependencies, callers: Callers) -> APIRouter:
    """Routes of what topics keep for a while."""
    routes = APIRouter(prefix="/v1", tags=["kept"])
    reads = TopicReads(parts)
    _rejections(routes, reads, callers)
    _deliveries(routes, reads, callers)
    return routes


def _rejections(routes: APIRouter, reads: TopicReads, callers: Callers) -> None:
    """Add the routes of refused requests."""

    @routes.get("/rejections", responses=problems(422, 429, 503))
    async def rejections(
        query: KeptQuery, caller: Principal = callers.who(Role.READ)
    ) -> RejectionsAnswer:
        """Refused requests of all tenants and of nobody, for who is bound to all tenants (`*`)."""
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


async def _rejected(reads: TopicReads, tenant: str | None, query: KeptAsked) -> RejectionsAnswer:
    """A page of refused requests: those of one tenant, or all of them where it is None."""
    asked = question("rejections", tenant)
    # The cursor is bound to the tenant, so that of one tenant is refused for another.
    before = _before(query.cursor, asked)
    page = await reads.run(partial(reads.parts.kept.rejected, tenant, before))
    return RejectionsAnswer(
        rejections=[_shown_request(each) for each in page.found],
        examined=page.examined,
        cursor=_cursor(page.rest, asked),
    )


def _deliveries(routes: APIRouter, reads: TopicReads, callers: Callers) -> None:
    """Add the routes of deliveries, and the one that replays a delivery."""

    @routes.get("/tenants/{tenant}/deliveries", responses=problems(422, 429, 503))
    async def deliveries(
        tenant: TenantName, _caller: Principal = callers.who(Role.READ)
    ) -> OpenDeliveriesAnswer:
        """Deliveries of one tenant that have no end, the latest first."""
        page = await reads.run(partial(reads.parts.kept.open_deliveries, tenant))
        found = [_shown_delivery(each) for each in page.found]
        return OpenDeliveriesAnswer(deliveries=found, examined=page.examined)

    @routes.get("/tenants/{tenant}/dead-letters", responses=problems(422, 429, 503))
    async def dead_letters(
        tenant: TenantName, query: KeptQuery, _caller: Principal = callers.who(Role.READ)
    ) -> DeadLettersAnswer:
        """Deliveries of one tenant that were given up, the latest first."""
        asked = question("dead-letters", tenant)
        before = _before(query.cursor, asked)
        page = await reads.run(partial(reads.parts.kept.dead_letters, tenant, before))
        return DeadLettersAnswer(
            deliveries=[_shown_delivery(each) for each in page.found],
            examined=page.examined,
            cursor=_cursor(page.rest, asked),
        )

    @routes.post(
        "/tenants/{tenant}/dead-letters/{letter}/replay", responses=problems(404, 422, 429, 503)
    )
    async def replay(
        tenant: TenantName, letter: LetterId, _caller: Principal = callers.who(Role.SCHEDULE)
    ) -> ReplayAnswer:
        """Deliver again what was given up, from the first attempt on and under the same fire id."""
        # The pattern of the path has seen to it that both are numbers.
        partition, _, offset = letter.partition("-")
        place = int(partition), int(offset)
        if not await reads.run(partial(reads.parts.kept.replay, tenant, place)):
            detail = f"Tenant {tenant} has no delivery {letter} that was given up: list them anew."
            raise Problem(HTTPStatus.NOT_FOUND, detail, "not_found")
        return ReplayAnswer(replayed=1)


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


def readable_fields(request: Any) -> Any:
    """Fields of a request with their bytes as text, or as base64 where they are none."""
    if isinstance(request, bytes):
        return bytes_json("value", request)
    if isinstance(request, list):
        return [readable_fields(each) for each in request]
    if isinstance(request, dict):
        return {name: readable_fields(value) for name, value in request.items()}
    return request


def _shown_delivery(each: KeptDelivery) -> DeliveryAnswer:
    """A delivery as it is answered; its `id` is its place, which a replay names."""
    told = asdict(each)
    at_ms, fired_ms, place = told.pop("at_ms"), told.pop("fired_ms"), told.pop("place")
    shown = None if place is None else f"{place[0]}-{place[1]}"
    return DeliveryAnswer(id=shown, at=instant(at_ms), fired_at=instant(fired_ms), **told)


def _cursor(rest: Before | None, asked: bytes) -> str | None:
    """The cursor behind a page: where each partition goes on; None where nothing older is kept."""
    if rest is None:
        return None
    ends = b"".join(_END.pack(*each) for each in sorted(rest.items()))
    return write_cursor(asked, len(rest), ends)


def _before(cursor: str | None, asked: bytes) -> Before | None:
    """Where a page goes on; raises `Problem` for what is no cursor of this question."""
    if cursor is None:
        return None
    number, ends = read_cursor(cursor, asked)
    if len(ends) != number * _END.size:
        raise bad_cursor(cursor)
    return dict(_END.iter_unpack(ends))
