"""Doors that bytes of strangers come in by, each with what has to hold whatever the bytes are.

    requests   one record of the requests topic: exactly one verdict, and the engine goes on
    headers    a record that speaks the header protocol: the same
    bodies     a body over HTTP: never 500, and what is refused asks for nothing
    cursors    a cursor of a list: 200 or 422, and no other tenant's schedule
    policies   a record of the topic of policies: a policy, or a refusal that says why
    crons      the text of a cron expression: a rule, or a mistake that says where it is
    rrules, icalendars, backups     texts (`text_doors.py`)
    members, rows, answers          what lies in Kafka, and what brokers say (`log_doors.py`)
    events, deliveries, marks, behind, batches      records of other topics (`topic_doors.py`)
    moves                           records of moves of key groups (`move_door.py`)
    logs, outputs                   what `belfry verify` reads (`verify_doors.py`)
    indexes, dayfiles               files in an object store (`file_doors.py`)
    schemas, fields, notes          registries, fields of JSON, other processes (`peer_doors.py`)

`limits.py` says how long each input may take, and how much memory may stay.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from belfry.api.json.conditions import Conditions
from belfry.api.json.cursors import question
from belfry.api.json.queries import ChangeQuery, ListQuery
from belfry.schedules.triggers.cron_spelling import normalized
from belfry.schedules.triggers.cron_text import CronMistake, interval_of
from belfry.schedules.triggers.cron_words import words_of
from belfry.schedules.triggers.expression import Expression
from belfry.store.lookup import Wanted
from belfry.tenants.policy import problems
from belfry.wire.catalogue import MalformedError
from belfry.wire.policies import decode_policy, encode_policy
from tests.attack.door import OTHER, OWN
from tests.fuzz import file_doors, log_doors, peer_doors, text_doors, topic_doors, verify_doors
from tests.fuzz.engine_door import EngineDoor
from tests.fuzz.http_door import CALLER, HttpDoor, Route, is_answer, scope_of
from tests.fuzz.inputs import headers_of, record_of
from tests.fuzz.move_door import MoveDoor

HOME: Final = f"/v1/tenants/{OWN}/schedules"
SCHEDULES: Final = "/v1/tenants/{tenant}/schedules"
SCHEDULE: Final = SCHEDULES + "/{schedule_id:path}"
KINDS: Final = ("application/json", "application/x-ndjson", "text/plain")
PREVIEW: Final = "/v1/preview"
PLACES: Final = (("POST", HOME), ("PUT", HOME + "/a"), ("POST", PREVIEW))
# Longer ones are refused before they are looked at.
MOST_CURSOR: Final = 2_000

Input = Callable[[bytes], None]


def requests() -> Input:
    """A record, as `record_of` reads it."""
    door = EngineDoor()
    return lambda data: door(*record_of(data))


def headers() -> Input:
    """A record without a value, and with these headers."""
    door = EngineDoor()
    return lambda data: door(None, b"v", headers_of(data))


def bodies() -> Input:
    """Where it goes and of which kind it is, in the first byte; the body behind it."""
    door = HttpDoor()
    create, put = door.function("POST", SCHEDULES), door.function("PUT", SCHEDULE)
    show = door.function("POST", PREVIEW)
    functions: tuple[Route, ...] = (
        lambda request: create(request, OWN, ChangeQuery(), Conditions(), CALLER),
        lambda request: put(request, OWN, "a", ChangeQuery(), Conditions(), CALLER),
        lambda request: show(request, CALLER),
    )

    def one(data: bytes) -> None:
        first = data[0] if data else 0
        place = first % len(PLACES)
        (method, path), kind = PLACES[place], KINDS[first // len(PLACES) % len(KINDS)]
        if door.whole():
            answer = door.ask(method, path, {"content-type": kind}, data[1:])
        else:
            answer = door.call(scope_of(method, path, kind), data[1:], functions[place])
        door.check(answer, is_answer)

    return one


def cursors() -> Input:
    """A cursor as it stands in a query; where its first byte is odd, with a true beginning."""
    door = HttpDoor()
    listed = door.function("GET", SCHEDULES)
    asked = question(HOME, Wanted(OWN.encode()))

    def one(data: bytes) -> None:
        given = data.decode(errors="replace")[:MOST_CURSOR]
        if data and data[0] & 1:
            given = urlsafe_b64encode(asked + data[1:])[:MOST_CURSOR].decode().rstrip("=")
        if not given:
            return

        def page(request: Request) -> Any:
            return listed(request, OWN, ListQuery(limit=2, cursor=given), CALLER)

        if door.whole():
            answer: Response = door.ask("GET", f"{HOME}?limit=2&cursor={quote(given)}", {}, b"")
        else:
            answer = door.call(scope_of("GET", HOME), b"", page)
        door.check(answer, (200, 422).__contains__)
        assert answer.status_code == 422 or OTHER.encode() not in answer.body, answer.body

    return one


def records(name: str, data: bytes) -> int:
    """How many records an input stands for: a preview shows up to a thousand instants of a rule.

    It has a bound of its own in belfry, 2 s of work, and here the time of ten records.
    """
    preview = name == "bodies" and data and PLACES[data[0] % len(PLACES)][1] == PREVIEW
    # A calendar is a file that somebody gives to a command.
    return 10 if preview or name == "icalendars" else 1


def policies() -> Input:
    """The body of a policy's record."""
    return one_policy


def one_policy(data: bytes) -> None:
    """A policy that has no problem is the same after it was written and read again."""
    try:
        policy = decode_policy(data)
    except MalformedError:
        return
    if not problems(policy):
        # NaN is a problem, so a policy that has none is equal to itself.
        assert decode_policy(encode_policy(policy)) == policy


def crons() -> Input:
    """The text of a cron expression."""
    return one_cron


def one_cron(data: bytes) -> None:
    """A rule that finds its next time and has words, or a mistake within the text."""
    text = data.decode(errors="replace")
    place = 0
    try:
        if interval_of(text) is None:
            Expression(text).next_wall(0)
            plain = normalized(text, 4711)
            assert normalized(plain) == plain, text
            Expression(plain).next_wall(0)
            assert words_of(plain)
    except CronMistake as mistake:
        place = mistake.position
    assert 0 <= place <= len(text), text


DOORS: Final[dict[str, Callable[[], Input]]] = {
    "requests": requests,
    "headers": headers,
    "bodies": bodies,
    "cursors": cursors,
    "policies": policies,
    "crons": crons,
    "rrules": text_doors.rrules,
    "icalendars": text_doors.icalendars,
    "backups": text_doors.backups,
    "members": log_doors.members,
    "rows": log_doors.rows,
    "answers": log_doors.answers,
    "events": topic_doors.events,
    "deliveries": topic_doors.deliveries,
    "marks": topic_doors.marks,
    "behind": topic_doors.behind,
    "batches": topic_doors.batches,
    "moves": MoveDoor,
    "logs": verify_doors.logs,
    "outputs": verify_doors.outputs,
    "indexes": file_doors.indexes,
    "dayfiles": file_doors.dayfiles,
    "schemas": peer_doors.schemas,
    "fields": peer_doors.fields,
    "notes": peer_doors.notes,
}
