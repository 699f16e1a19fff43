"""Reads of topics for routes: records that Kafka keeps, searched from the end backwards.

The records of all tenants lie in one topic, and none of them is indexed. A look goes back from the
end of the topic and takes a bounded time, so a page may be short, or empty, while older pages hold
more: the cursor goes on.

    GET …/dead-letters             p0 from 10 000 back to 8 200, p1 from 90 to 0: 3 of this tenant
                                   cursor: {p0: 8 200}, for p1 holds nothing older
    GET …/dead-letters?cursor=…    p0 from 8 200 back to 6 400: none; the cursor goes on

Reads block, so they run in threads (`TopicReads`). If Kafka does not answer, neither do they: the
answer is 503 with `retry-after`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from confluent_kafka import KafkaException
from fastapi import Query
from pydantic import Field

from belfry.api.json.cursors import bad_cursor, read_cursor, write_cursor
from belfry.api.json.queries import Known
from belfry.api.json.shapes import bytes_json
from belfry.api.problems import Problem
from belfry.api.server.threads import Threads
from belfry.api.workers.kept import Before
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.kafka.causes import cause_of
from belfry.registry.answers import RegistryUnreachableError

T = TypeVar("T")
# Each has a connection to Kafka while it is under way.
MOST_LOOKS: Final = 4
# In a cursor: partition and the offset before which the next look begins.
_END: Final = struct.Struct(">HQ")
# A letter's id: partition and offset, such as 3-17042.
PLACE: Final = r"^\d{1,5}-\d{1,18}$"
CURSOR_DOC: Final = "Give it back for older ones; null if there are no older ones."
EXAMINED_DOC: Final = "How many records and markers of all tenants were looked at for it."


class KeptAsked(Known):
    """From where on to look."""

    cursor: str | None = Field(None, max_length=2000, description="Of the page before.")

    def before(self, asked: bytes) -> Before | None:
        """Where the page goes on, None at the end; raises `Problem` for another question's cursor.

        `asked` is the digest of the question that the cursor has to belong to.
        """
        if self.cursor is None:
            return None
        number, ends = read_cursor(self.cursor, asked)
        if len(ends) != number * _END.size:
            raise bad_cursor(self.cursor)
        return dict(_END.iter_unpack(ends))


KeptQuery = Annotated[KeptAsked, Query()]


class TopicReads:
    """Reads of topics in threads of few; belongs to one event loop.

    `parts.kept` reads Kafka behind it, and is there once the worker is connected.
    """

    def __init__(self, parts: ApiDependencies) -> None:
        self.parts = parts
        self._threads = Threads("looks at topics", MOST_LOOKS)

    async def run(self, look: Callable[[], T]) -> T:
        """The result of a look; raises `Problem` if Kafka, or the registry, does not answer.

        It raises the same (503) where `MOST_LOOKS` looks are under way already.
        """
        try:
            return await self._threads.run(look)
        except (ConnectionError, KafkaException) as error:
            detail = f"Kafka did not answer ({cause_of(error)}): try again."
        except RegistryUnreachableError as error:
            detail = f"{error}. Try again."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "unavailable", RETRY_SOON)


def readable_fields(request: Any) -> Any:
    """Fields of a request with their bytes as text, or else as base64."""
    if isinstance(request, bytes):
        return bytes_json("value", request)
    if isinstance(request, list):
        return [readable_fields(each) for each in request]
    if isinstance(request, dict):
        return {name: readable_fields(value) for name, value in request.items()}
    return request


def older(rest: Before | None, asked: bytes) -> str | None:
    """The cursor behind a page: where each partition goes on; None if there are no older ones."""
    if rest is None:
        return None
    ends = b"".join(_END.pack(*each) for each in sorted(rest.items()))
    return write_cursor(asked, len(rest), ends)
