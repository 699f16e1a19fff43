"""A batch waits until a registry has settled what its requests refer to, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from belfry.registry.answers import Missing, Unreachable, Unusable, WriterSchema
from belfry.schedules.rejections import Rejection
from belfry.wire import catalogue
from belfry.wire.requests import RequestReader
from belfry.worker.resolver import Resolver

OURS = catalogue.schema("ScheduleRequest")
FIELDS = {"tenant": "t", "schedule_id": "s", "at": 1_000, "key": b"k", "payload": b"p"}
SEVEN = (0, 0, b"t", b"\0\0\0\0\7" + catalogue.encode("ScheduleRequest", FIELDS), None)
PLAIN = (0, 0, b"t", b"text", None)


class Registry:
    """Answers with what it is told to; counts how often it is asked."""

    def __init__(self, answer: WriterSchema) -> None:
        self.answer = answer
        self.asked = 0

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""
        assert schema_id == 7
        self.asked += 1
        return self.answer

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""
        raise AssertionError(guid)


@contextmanager
def resolving(registry: Any, wait_ms: int = 0) -> Iterator[tuple[Resolver, RequestReader]]:
    """A resolver and the reader that it settles references for."""
    reader = RequestReader()
    resolver = Resolver(reader, registry, wait_ms)
    try:
        yield resolver, reader
    finally:
        resolver.close()


def soon(true: Callable[[], bool]) -> None:
    """Wait until this holds; the test's time-out is its limit."""
    while not true():
        time.sleep(0.001)


def refusal(reader: RequestReader) -> str:
    """Why what refers to schema 7 is refused, or nothing."""
    found = reader.read(SEVEN)
    return found.code if isinstance(found, Rejection) else ""


def test_what_refers_to_nothing_is_ready_and_nobody_is_asked() -> None:
    registry = Registry(OURS)
    with resolving(registry) as (resolver, _):
        assert resolver.ready([PLAIN])
        assert resolver.ready([])
    assert not registry.asked


def test_a_schema_is_asked_for_once_and_then_known() -> None:
    registry = Registry(OURS)
    with resolving(registry) as (resolver, reader):
        soon(lambda: resolver.ready([SEVEN, PLAIN]))
        assert resolver.ready([SEVEN])
        assert not refusal(reader)
    assert registry.asked == 1


def test_without_a_registry_it_is_refused_at_once() -> None:
    with resolving(None) as (resolver, reader):
        assert resolver.ready([SEVEN])
        assert refusal(reader) == "unknown_schema_id"


def test_a_registrys_no_settles_it() -> None:
    for answer, expected in (
        (Missing("not there"), "unknown_schema_id"),
        (Unusable("recursive"), "schema_unsafe"),
        (Unreachable("refused"), "schema_unavailable"),
    ):
        with resolving(Registry(answer)) as (resolver, reader):
            soon(lambda: resolver.ready([SEVEN]))
            assert refusal(reader) == expected


def test_a_registry_that_is_away_is_asked_again_while_the_batch_waits() -> None:
    registry = Registry(Unreachable("refused"))
    with resolving(registry, wait_ms=60_000) as (resolver, reader):
        assert not resolver.ready([SEVEN])
        soon(lambda: registry.asked == 1)
        assert not resolver.ready([SEVEN])
        registry.answer = OURS
        soon(lambda: resolver.ready([SEVEN]))
        assert not refusal(reader)
    assert registry.asked == 2


def test_a_refusal_is_forgotten_so_that_the_next_request_asks_again(monkeypatch: Any) -> None:
    now = [100.0]
    monkeypatch.setattr("belfry.worker.resolver.monotonic", lambda: now[0])
    registry = Registry(Missing("not there"))
    with resolving(registry) as (resolver, reader):
        soon(lambda: resolver.ready([SEVEN]))
        registry.answer = OURS
        assert resolver.ready([SEVEN])
        assert registry.asked == 1
        now[0] += 10
        soon(lambda: resolver.ready([SEVEN]))
        assert not refusal(reader)
    assert registry.asked == 2
