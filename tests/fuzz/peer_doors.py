"""Doors of what other processes say: a registry, a caller's JSON, other workers.

schemas   a writer's schema, and a record of it: read within bounds, or refused by name
fields    texts that a request's fields hold: what they say, or a refusal that says why
notes     notes of other workers, and their proofs: read, or passed over, or refused by name
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from belfry.api.auth.access import Gate
from belfry.api.problems import Problem
from belfry.api.workers.break_notes import MOST_BYTES, NoRoomForBreaks, entries_in, texts_of
from belfry.api.workers.internal_token import InternalToken, Target
from belfry.schedules.bulk import BulkSpec, read_bulk
from belfry.schedules.calendars import Calendar, read_calendar
from belfry.schedules.instants import parse_duration, parse_instant
from belfry.schedules.rejections import Rejection
from belfry.schedules.retry_rule import parse_retry_rule
from belfry.settings import agreement
from belfry.store.identity import identity_of, identity_text
from belfry.store.layout.records import UnknownFormat
from belfry.wire.catalogue import MalformedError, RecordReader
from belfry.wire.readings import reading_of
from tests.fuzz.inputs import Parts
from tests.unit.engine.driver import T0

Input = Callable[[bytes], None]
TARGET: Final = Target("GET", "/v1/tenants/shop/schedules", "")
KEY: Final = b"a secret of two workers"


def schemas() -> Input:
    """The JSON of a schema, and a body; the schema's length in two bytes."""
    return one_schema


def one_schema(data: bytes) -> None:
    """A reading that decodes the body, or says why not."""
    parts = Parts(data)
    try:
        writer = json.loads(parts.take())
    except (ValueError, RecursionError):
        return
    if not isinstance(writer, dict):
        return
    reading = reading_of(writer)
    if isinstance(reading, Rejection):
        assert reading.reason
        return
    with suppress(MalformedError):
        RecordReader("ScheduleRequest", writer).read(parts.take())


def fields() -> Input:
    """A text; each kind of field is given it."""
    return one_field


def one_field(data: bytes) -> None:
    """What is read says the same when it is written and read again."""
    text = data.decode(errors="replace")
    calendar = read_calendar(text)
    if isinstance(calendar, Calendar):
        assert read_calendar(calendar.text()) == calendar
    spec = read_bulk(text)
    if isinstance(spec, BulkSpec):
        assert read_bulk(spec.text()) == spec
    readers: tuple[Callable[[str], Any], ...] = (parse_retry_rule, parse_instant, parse_duration)
    for read in readers:
        with suppress(ValueError):
            read(text)


def notes() -> Input:
    """Where the first byte is odd, a claim that is signed; else a text of a note."""
    tokens = InternalToken((KEY,), Gate(), lambda: float(T0))

    def one(data: bytes) -> None:
        text = data[1:].decode(errors="replace")
        given = text
        if data and data[0] & 1:
            claim = data[1:].hex()
            given = f"{claim}.{TARGET.signed(KEY, claim)}"
        with suppress(Problem):
            assert tokens.read(given, TARGET).principal.name is not None
        one_note(text)

    return one


def one_note(text: str) -> None:
    """Breaks that fit into notes again; statements and anchors that can be compared."""
    breaks = entries_in({0: text}, T0)
    with suppress(NoRoomForBreaks):
        for each in texts_of(breaks, 8).values():
            assert len(each.encode()) <= MOST_BYTES
    said = agreement.decode(text)
    agreement.told(agreement.differences(said, said))
    agreement.told(agreement.differences(said, dict.fromkeys(said)))
    agreement.disagreements({0: said, 1: dict.fromkeys(said, "x")})
    with suppress(UnknownFormat):
        identity = identity_of(text)
        assert identity_of(identity_text(identity)) == identity
