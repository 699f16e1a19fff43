"""Schedules as JSON, one object a line: the form of exports and imports, without loss.

Names are those of `ScheduleRequest`; instants are RFC 3339, bytes are text where they are UTF-8 and
base64 where they are not. Fields that are empty are left out. `standing` holds where the schedule
stood: its next instant, the number of its next fire, its version, and whether it was paused.

    {"tenant":"demo","schedule_id":"a","kind":"CRON","cron":"0 9 * * MON","payload_text":"hi",
     "standing":{"next_at":"2026-12-07T09:00:00.000Z","occurrence":3,"version":1,"paused":false}}

A payload that is encrypted at rest stays encrypted (`payload_encrypted_base64`): neither an export
nor a backup needs its key, and neither holds the plain payload.  An import needs it. A payload that
lies in a day file is put back into its record before (`cli/day_files.py`).

The fields come from the table of a request's fields (`schedules/fields.py`), without those that
concern one request alone, such as its id. A field that a later release adds is refused on import,
and an export refuses a schedule that it cannot write as a whole: otherwise a part would be lost
without a word.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from belfry.client.errors import BelfryError
from belfry.schedules.field import Form
from belfry.schedules.fields import EMPTY, FIELDS, OF_A_RULE, OF_ONE_REQUEST
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.rule import decode_rule
from belfry.schedules.targets import record_of, records_in
from belfry.schedules.triggers.registry import kind_at_rest
from belfry.store.layout.pending import Away, Encrypted, decode_headers, decode_pending
from belfry.store.layout.pending_bytes import paused
from belfry.store.readable import UNREADABLE
from belfry.wire.quick_writing import Ready

# The form of each field that a schedule keeps, by its name.
_FORM: Final = {name: field.form for name, field in FIELDS.items() if name not in OF_ONE_REQUEST}
_INSTANTS: Final = frozenset(name for name, form in _FORM.items() if form is Form.INSTANT)
_BYTES: Final = tuple(name for name, form in _FORM.items() if form is Form.BYTES)
_TYPES: Final = {
    Form.TEXT: str,
    Form.SYMBOL: str,
    Form.NUMBER: int,
    Form.DURATION: int,
    Form.FLAG: bool,
}
_TYPE_OF: Final = {name: _TYPES[form] for name, form in _FORM.items() if form in _TYPES}
_KNOWN: Final = frozenset(json for name in _FORM for json in FIELDS[name].json_names)
# A payload as it is encrypted at rest.
CIPHERTEXT: Final = "payload_encrypted_base64"
_READ: Final = _KNOWN | {CIPHERTEXT}
_CREATE: Final = {**EMPTY, "action": "CREATE"}
# Names within `standing`, of which `next_at` has to be there.
_STANDING: Final = {"next_at", "occurrence", "version", "paused"}
# Most schedules say the same instant twice: when they are due, and where they stand.
_parsed: Final = lru_cache(maxsize=16)(parse_instant)
R = TypeVar("R", bound="dict[str, Any] | Ready")


class NotPortable(ValueError):
    """A line that holds no schedule; the message says why."""


class UnreadableSchedule(BelfryError):
    """A schedule that this version does not understand; the message says which, and why."""


def portable(record: bytes) -> dict[str, Any]:
    """A pending record of the changelog as an object of JSON.

    `record` has the bytes that `store/README.md` specifies. Raises `UnreadableSchedule`.
    """
    row = decode_pending(record)
    if type(row.payload) is Away:
        raise UnreadableSchedule(
            f"The payload of {row.name.decode()} lies in a day file: put it back before."
        )
    try:
        kind, rule = kind_at_rest(row.kind), decode_rule(row.extra)
    except UNREADABLE as error:
        name = f"{row.tenant.decode()}/{row.schedule_id.decode()}"
        raise UnreadableSchedule(
            f"Schedule {name} is of a later release than this one, which cannot tell all of it:"
            f" {error} Nothing is left out, so run the command of the workers' release."
        ) from None
    found: dict[str, Any] = {
        "tenant": row.tenant.decode(),
        "schedule_id": row.schedule_id.decode(),
        **{name: getattr(rule, name) for name in OF_A_RULE},
        # The row's, and behind the rule's: a delay has no bytes of a rule, which read as AT.
        "kind": kind.name,
        kind.field.name: kind.said(rule, row.when),
        "jitter_ms": row.jitter_ms or None,
        "event_type": row.event_type.decode() or None,
        "group": row.group.decode() or None,
    }
    found |= {name: _moment(found[name]) for name in _INSTANTS if name in found}
    found |= _shown("key", row.key)
    if type(row.payload) is Encrypted:
        found[CIPHERTEXT] = b64encode(row.payload).decode()
    else:
        found |= _shown("payload", row.payload)
    headers = decode_headers(row.headers)
    if headers:
        found["headers"] = [{"name": name, **_shown("value", value)} for name, value in headers]
    if rule.targets is not None:
        found["http_targets"] = records_in(rule.targets)
    found["standing"] = {
        "next_at": format_instant(row.nominal_ms),
        "occurrence": row.occurrence,
        "version": row.version,
        "paused": paused(record),
    }
    return {name: value for name, value in found.items() if value is not None}


def request_fields(given: object) -> dict[str, Any]:
    """The request, action CREATE, that brings an exported schedule back; raises `NotPortable`.

    The result has every field of a `ScheduleRequest`, and `standing`, by which workers let the
    schedule go on where it stood. Types are checked here, and rules by the worker. A payload that
    was encrypted at rest is `Encrypted`, and has to be decrypted before it is sent.
    """
    if type(given) is not dict and not isinstance(given, Mapping):
        raise NotPortable(f"a schedule is a JSON object, not {type(given).__name__}")
    if not _READ.issuperset(given):
        unknown = given.keys() - _READ
        raise NotPortable(f"{', '.join(sorted(map(str, unknown)))}: no such field is known")
    for name in ("tenant", "schedule_id"):
        if name not in given:
            raise NotPortable(f"{name} is missing")
    fields = _CREATE | _scalars(given)
    is_delay = fields["at"] is None and fields["delay_ms"] is not None
    if fields["kind"] == "AT" and is_delay and "standing" in given:
        # Exports of earlier builds wrote delays so. Lines that people write themselves stay as they
        # are.
        fields["kind"] = "AFTER"
    for name in _BYTES:
        fields[name] = _bytes(name, given)
    fields["payload"] = _payload(given, fields["payload"])
    headers = given.get("headers", [])
    if not isinstance(headers, list):
        raise NotPortable(f"headers {headers!r:.80} are no list")
    fields["headers"] = [_header(each) for each in headers]
    fields["http_targets"] = _targets(given["http_targets"]) if "http_targets" in given else []
    fields["standing"] = _standing(given.get("standing"))
    return fields


def _scalars(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are one value, and neither bytes nor a structure."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        wanted = _TYPE_OF.get(name)
        if wanted is not None:
            if type(value) is not wanted:
                raise NotPortable(f"{name} is {value!r:.80}, which is no {wanted.__name__}")
            found[name] = value
        elif name in _INSTANTS:
            found[name] = _instant(name, value)
    return found


def sendable(request: R) -> R:
    """The same request; raises `BelfryError` where its payload is still encrypted."""
    if isinstance(request, dict) and type(request.get("payload")) is Encrypted:
        tenant, schedule_id = names_of(request)
        raise BelfryError(
            f"The payload of {tenant}/{schedule_id} is encrypted: decrypt it before, as `belfry"
            " restore` and `belfry schedule import` do."
        )
    return request


def names_of(request: dict[str, Any] | Ready) -> tuple[str, str]:
    """Tenant and schedule id of a request in either form."""
    if isinstance(request, dict):
        return request["tenant"], request["schedule_id"]
    return request.tenant, request.schedule_id


def _moment(ms: int | None) -> str | None:
    """An instant as RFC 3339, None for None."""
    return None if ms is None else format_instant(ms)


def _shown(name: str, value: bytes | None) -> dict[str, str]:
    """Bytes under a name that says how they are written; nothing for None."""
    if value is None:
        return {}
    try:
        return {f"{name}_text": value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


def _instant(name: str, value: object) -> int:
    """Epoch milliseconds of an instant, or of a number that is one."""
    if type(value) is int:
        return value
    try:
        return _parsed(str(value))
    except ValueError as error:
        raise NotPortable(f"{name}: {error}") from None


def _bytes(name: str, given: Mapping[str, Any]) -> bytes | None:
    """The bytes of a field, from its text or its base64, and not from both."""
    text, coded = given.get(name + "_text"), given.get(name + "_base64")
    try:
        if coded is None:
            return None if text is None else str(text).encode()
        if text is None:
            return b64decode(coded, validate=True)
    except (NoBase64, TypeError, ValueError) as error:
        raise NotPortable(f"{name} cannot be read: {error}") from None
    raise NotPortable(f"{name}_text and {name}_base64 say the same in two ways: keep one")


def _payload(given: Mapping[str, Any], plain: bytes | None) -> bytes | None:
    """The payload as it is, or `Encrypted` where it was encrypted at rest."""
    if CIPHERTEXT not in given:
        return plain
    if "standing" not in given:
        raise NotPortable(f"{CIPHERTEXT} is for exports, with standing: give the payload")
    if plain is not None:
        raise NotPortable(f"{CIPHERTEXT} comes beside another payload: keep one")
    found = _bytes("payload", {"payload_base64": given[CIPHERTEXT]})
    return Encrypted(found or b"")


def _header(given: object) -> dict[str, Any]:
    """A header as a request has it."""
    if not isinstance(given, Mapping) or type(given.get("name")) is not str:
        raise NotPortable(f"{given!r:.80} is no header: give name, and value_text or value_base64")
    return {"name": given["name"], "value": _bytes("value", given)}


def _targets(given: object) -> list[dict[str, Any]]:
    """HTTP targets as a request has them."""
    if not isinstance(given, list):
        raise NotPortable(f"http_targets {given!r:.80} are no list")
    try:
        return [record_of(each) for each in given]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise NotPortable(f"http_targets: {error}") from None


def _standing(given: object) -> dict[str, Any] | None:
    """Where a schedule stood; missing fields have the values of a new one."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not _STANDING.issuperset(given) or "next_at" not in given:
        raise NotPortable(f"standing {given!r:.80} is none: give {', '.join(sorted(_STANDING))}")
    found = {"occurrence": 0, "version": 1, "paused": False, **given}
    for name, wanted in (("occurrence", int), ("version", int), ("paused", bool)):
        if type(found[name]) is not wanted:
            raise NotPortable(f"standing.{name} is {found[name]!r:.80}: no {wanted.__name__}")
    found["next_at"] = _instant("standing.next_at", given["next_at"])
    return found
