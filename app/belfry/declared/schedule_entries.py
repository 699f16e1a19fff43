"""A schedule as a file declares it: any trigger, and all that its event is made of.

Names are those of `ScheduleRequest`, as JSON has them, and for durations and bytes the client's as
well: ``every: 30s`` is ``interval_ms: 30000``, ``payload: hi`` is ``payload_text: hi``.  Instants
are RFC 3339 with an offset or epoch milliseconds, durations such as ``5m`` or milliseconds.

`belfry.declared.definition` says how two schedules are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from json import dumps
from typing import Any, Final

import orjson

from belfry.client.portable import NotPortable, request_fields
from belfry.client.requests import duration_ms, instant_ms
from belfry.client.requests import problem as request_problem
from belfry.declared.definition import DECLARED, DELAY, definition, digest_of
from belfry.declared.yaml_lines import Complaints, Entry, unknown
from belfry.schedules.field import Field, Form
from belfry.schedules.fields import FIELDS, KIND_OF
from belfry.schedules.instants import format_instant
from belfry.schedules.triggers.registry import KINDS

# Fields by which a schedule may end by itself, besides the kinds that fire once.
_ENDING: Final = ("max_fires", "end_at")


def _names() -> dict[str, tuple[Field, str]]:
    """Names that a file may use: the field, and the name that JSON has for it."""
    found: dict[str, tuple[Field, str]] = {}
    for name, each in DECLARED.items():
        for json in each.json_names:
            found[json] = (each, json)
        if each.form is Form.BYTES:
            found[name] = (each, f"{name}_text")
        elif each.argument:
            found[each.argument.rstrip("_")] = (each, name)
    found["payload_json"] = (FIELDS["payload"], "payload_text")
    return found


_NAMES: Final = _names()
KNOWN: Final = tuple(_NAMES)


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """A schedule: its request, action CREATE, and the same as JSON.

    `at` is its place in the file and `path` its name in messages, for mistakes that are found
    later.
    """

    tenant: str
    schedule_id: str
    request: dict[str, Any]
    json: dict[str, Any]
    at: Entry
    path: str

    @property
    def is_relative(self) -> bool:
        """Whether it counts from its request."""
        return self.request[DELAY] is not None

    @property
    def can_be_over(self) -> bool:
        """Whether it may end by itself, so that to be gone is no difference."""
        recurs = self.request["kind"] in ("EVERY", "CRON", "RRULE")
        rule = str(self.request.get("rrule") or "").upper()
        bounded = "COUNT=" in rule or "UNTIL=" in rule
        return not recurs or bounded or any(self.request[name] is not None for name in _ENDING)

    def digest(self) -> str:
        """The digest of this definition: 16 hex digits of a SHA-256 of its fields."""
        return digest_of(definition(self.request))

    def check(self, now_ms: int, complaints: Complaints) -> None:
        """Complain of schedules that every worker would refuse now."""
        found = request_problem(self.request, now_ms)
        if found is not None:
            self.at_fault(f"{found.reason} ({found.code})", complaints)

    def at_fault(self, message: str, complaints: Complaints) -> None:
        """Complain at the line of the field that the message speaks of."""
        entries = self.at.entries(Complaints(), self.path)
        named = [each for each in entries if str(each.name) in message.split()]
        at = named[0] if named else self.at
        path = f"{self.path}.{at.name}" if named else self.path
        complaints.add(at, path, message)


def declared_schedule(at: Entry, names: tuple[str, str], complaints: Complaints) -> Any:
    """The `DeclaredSchedule` of an entry, or None where something is wrong with it.

    `names` are tenant and id. Each field is read by itself, so each mistake has its own line.
    """
    tenant, schedule_id = names
    path, before = f"{tenant}/{schedule_id}", len(complaints.lines)
    who = {"tenant": tenant, "schedule_id": schedule_id}
    json: dict[str, Any] = {}
    for each in at.entries(complaints, path):
        known = _NAMES.get(each.name)
        if each.name == "kind":
            continue
        if known is None:
            complaints.add(each, f"{path}.{each.name}", unknown(each.name, KNOWN))
            continue
        field, name = known
        if name in json:
            complaints.add(each, f"{path}.{each.name}", f"{name} is said twice: keep one")
        try:
            json[name] = _value(each, field)
            request_fields({**who, name: json[name]})
        except ValueError as error:
            complaints.add(each, f"{path}.{each.name}", _without(name, str(error)))
    if len(complaints.lines) == before:
        _say_when(at, path, json, complaints)
    if len(complaints.lines) > before:
        return None
    request = request_fields({**who, **json})
    return DeclaredSchedule(tenant, schedule_id, request, json, at, path)


def _say_when(at: Entry, path: str, json: dict[str, Any], complaints: Complaints) -> None:
    """Put the kind beside the one field that says when; complain unless there is exactly one."""
    given = [name for name in KIND_OF if json.get(name) is not None]
    if len(given) == 1:
        json["kind"] = KIND_OF[given[0]]
        return
    names = [each.field.argument.rstrip("_") for each in KINDS.values()]
    told = ", ".join(given) or "none"
    complaints.add(at, path, f"exactly one of {', '.join(names)} says when; given: {told}")


def _value(entry: Entry, field: Field) -> Any:
    """A field's value as JSON has it; `ValueError` says what is wrong."""
    value = entry.value()
    if entry.name == "payload_json":
        return _json(value)
    match field.form:
        case Form.INSTANT:
            return format_instant(instant_ms(_instant(value)))
        case Form.DURATION if isinstance(value, str):
            return duration_ms(value)
        case Form.SYMBOL if value not in field.symbols:
            near = get_close_matches(str(value).upper(), field.symbols, n=1)
            guess = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(f"{value!r} is none of {', '.join(field.symbols)}.{guess}")
        case Form.BYTES if not isinstance(value, str):
            raise ValueError(f"{value!r:.80} is no text: put it in quotes, or use payload_json")
        case Form.HEADERS if isinstance(value, dict):
            return [{"name": str(name), **_header(text)} for name, text in value.items()]
    return value


def _json(value: object) -> str:
    """A value as JSON; `ValueError` where JSON has no such value.

    The second look is for `.nan` and `.inf`, which orjson writes as null.
    """
    try:
        text = orjson.dumps(value).decode()
        dumps(value, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}; put texts and names in quotes") from None
    return text


def _instant(value: object) -> Any:
    """A value that may be an instant: YAML reads an unquoted one as a datetime, or as a day."""
    if isinstance(value, date) and not isinstance(value, datetime):
        raise NotPortable(f"{value} is a day: give an instant, such as {value}T09:00:00Z")
    if isinstance(value, bool) or not isinstance(value, int | str | datetime):
        raise NotPortable(f"{value!r:.80} is no instant: give RFC 3339 or epoch milliseconds")
    if isinstance(value, datetime) and value.tzinfo is None:
        text = value.isoformat()
        raise NotPortable(f"{text} has no time zone: give an offset, such as {text}Z")
    return value


def _header(value: object) -> dict[str, str]:
    """The value of a header; None is a header with a null value."""
    if value is None:
        return {}
    if not isinstance(value, str):
        raise NotPortable(f"header value {value!r:.80} is no text: put it in quotes")
    return {"value_text": value}


def _without(name: str, message: str) -> str:
    """A message without the name of the field, which stands before it anyway."""
    return message.removeprefix(f"{name}: ").removeprefix(f"{name} is ")
