"""The header protocol: a record with `belfry-…` headers schedules its own value.

    belfry-tenant: demo   belfry-id: hello   belfry-in: 5m      value, key, other headers: the event

This is for kcat, Connect sources and any language without Avro. Such headers win over an Avro
value. The table of fields has the names (`schedules/fields.py`), and the form of a field decides
how its value is read (`header_values`).

    belfry-tenan: demo      unknown_header: "Unknown header belfry-tenan; did you mean
                            belfry-tenant? …"
    belfry-in: 5 minutes    bad_header: the text of `instants.parse_duration`

Names that begin with ``belfry-`` are belfry's. An unknown one is refused, because it may be a
misspelt field. Headers that belfry itself puts onto its records (`TRAVELLING`) may come in again,
on an event that is scheduled anew, and then count as the user's own. A record that could not be
read whole has such headers, too (`unread`). One header gives an instant without being a field:
`belfry-retry` puts a record back that its consumer could not handle (`retries`).
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final, cast

from belfry.schedules.fields import EMPTY, FIELDS
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Header, Request
from belfry.schedules.retry_rule import HEADER as RETRY
from belfry.schedules.triggers.registry import KINDS
from belfry.wire.header_values import READERS, said_twice
from belfry.wire.record import ORIGIN_PREFIX, SIGNATURE, Headers, SourceRecord, stamp_of
from belfry.wire.retries import FiredBefore, is_put_back, name_after, put_back
from belfry.wire.unread import CUT

PREFIX: Final = "belfry-"
_RULE: Final = "retry"  # A rule of retries, while its record is read.
# The headers that give the instant, with kind and field; and all others.
WHEN: Final = {
    **{each.field.header: (each.name, each.field.name) for each in KINDS.values()},
    RETRY: ("AFTER", _RULE),
}
OTHERS: Final = {
    field.header: field.name
    for field in FIELDS.values()
    if field.header and field.header not in WHEN
}
# The asker, and the schedule that is asked for.
NAMES: Final = {name: OTHERS[name] for name in ("belfry-tenant", "belfry-id", "belfry-request-id")}
FIRE_ID: Final = "belfry-fire-id"
# On each fired record besides its id. The headers of a request have other names, so that a fired
# record that is sent to belfry unchanged is not a request.
TENANT: Final = "belfry-schedule-tenant"
VERSION: Final = "belfry-schedule-version"
GROUP: Final = "belfry-schedule-group"
EVENT_TYPE: Final = "belfry-schedule-type"
# On events of a backfill: the id of its job.
BACKFILL: Final = "belfry-backfill"
# The place of the schedule's request, as topic/partition/offset; if the policy says so.
SOURCE: Final = "belfry-source"
# On an event that was sent again: the name of the redrive, and the offset of the event.
REDRIVEN: Final = "belfry-redriven"
PROTOCOL: Final = frozenset(WHEN) | frozenset(OTHERS)
# On records of fired events, dry runs, deliveries, webhooks and refused requests.
TRAVELLING: Final = frozenset(
    {
        FIRE_ID,
        "belfry-schedule-id",
        "belfry-scheduled-at",
        "belfry-occurrence",
        "belfry-missed",
        TENANT,
        EVENT_TYPE,
        GROUP,
        VERSION,
        BACKFILL,
        SOURCE,
        REDRIVEN,
        "belfry-dry-run",
        "belfry-delivery",
        "belfry-attempt",
        "belfry-unreadable",
        "belfry-error-code",
        "belfry-error-reason",
        "belfry-error-topic",
        "belfry-error-partition",
        "belfry-error-offset",
        "belfry-error-at",
        "belfry-error-tenant",
        CUT,
    }
)
KNOWN: Final = PROTOCOL | {SIGNATURE} | TRAVELLING
# The same fields under the names that Avro and the command line have for them.
_ELSEWHERE: Final = {
    name: field.header for field in FIELDS.values() if field.header for name in field.also
}


def speaks_protocol(headers: Headers) -> bool:
    """Whether these headers hold a request."""
    return any(name in PROTOCOL and given is not None for name, given in headers)


def unknown_header(headers: Headers | None) -> Rejection | None:
    """A refusal, if one of these headers has a name of belfry's that belfry does not know."""
    return next((_unknown(name) for name, _ in headers or () if _is_unknown(name)), None)


def misspelt_header(headers: Headers | None) -> Rejection | None:
    """Refuse headers of which one may be a misspelt one of belfry's, or None.

    It is asked of records that hold no request otherwise: there nothing else can have been meant.
    """
    return unknown_header(headers) or respelt_header(headers)


def respelt_header(headers: Headers | None) -> Rejection | None:
    """Refuse headers of which one is belfry's but for case, underscores or a leading `x-`, or None.

    A null says nothing (`speaks_protocol`): who makes headers of columns has them.
    """
    return next(
        (
            _unknown(name)
            for name, given in headers or ()
            if given is not None and name not in PROTOCOL and _plain(name) in PROTOCOL
        ),
        None,
    )


def _plain(name: str) -> str:
    """A name as belfry would spell it."""
    return name.lower().replace("_", "-").removeprefix("x-")


def asked_by(record: SourceRecord) -> Request | None:
    """The tenant, schedule and request id, as far as the headers of a refused record have them.

    None if the record does not speak the protocol. Bytes that are not UTF-8 are replaced.
    """
    headers = record[4] or []
    if not speaks_protocol(headers):
        return None
    fields: dict[str, Any] = {**EMPTY, "key": record[2], "payload": record[3]}
    for name, given in headers:
        if name in NAMES and given is not None:
            fields[NAMES[name]] = given.decode(errors="replace")
    if is_put_back(headers):
        name_after(fields, _fired_before(headers), "replace")
    stamp = stamp_of(headers)
    if stamp is not None:
        fields["tenant"] = stamp
    return cast("Request", {"tenant": "", "schedule_id": "", **fields})


def read_headers(record: SourceRecord) -> Request | Rejection:
    """The request that a record's headers hold, or why there is none.

    A header of belfry's that comes twice counts once, and is refused if its values differ.
    """
    _, _, key, value, headers = record
    fields: dict[str, Any] = {**EMPTY, "key": key, "payload": value}
    kept: list[Header] = []
    kinds: list[str] = []
    said: dict[str, bytes] = {}
    for name, given in headers or ():
        if name in PROTOCOL:
            # A producer that makes headers of columns has one for each, even for an empty column.
            if given is not None and said.setdefault(name, given) != given:
                code = "several_instants" if name in WHEN else "bad_header"
                return said_twice(code, name, said[name], given)
        elif _is_unknown(name):
            return _unknown(name)
        elif name != SIGNATURE and not name.startswith(ORIGIN_PREFIX):
            kept.append({"name": name, "value": given})
    for name, text in said.items():
        problem = _read(name, text, fields, kinds)
        if problem is not None:
            return problem
    fields["headers"] = kept
    stamp = stamp_of(headers)
    if stamp is not None:
        fields["tenant"] = stamp
    refused = _put_back(fields, kinds, record) if RETRY in kinds else None
    return _whole(fields, kinds) if refused is None else refused


def _read(name: str, given: bytes, fields: dict[str, Any], kinds: list[str]) -> Rejection | None:
    try:
        text = given.decode()
        if name in OTHERS:
            fields[OTHERS[name]] = READERS[name](text)
            return None
        kinds.append(name)
        if len(kinds) == 1:
            # A second instant is refused anyway: so further ones, perhaps thousands, are not read.
            kind, field = WHEN[name]
            fields["kind"], fields[field] = kind, READERS[name](text)
    except UnicodeDecodeError:
        return Rejection("bad_header", f"Header {name} is no UTF-8: {given!r:.80}.")
    except ValueError as error:
        return Rejection("bad_header", f"Header {name}: {error}")
    return None


def _put_back(fields: dict[str, Any], kinds: list[str], record: SourceRecord) -> Rejection | None:
    """Read the header that puts a record back, or refuse the record."""
    if len(kinds) > 1:
        return _several(kinds)
    return put_back(fields, fields.pop(_RULE), _fired_before(record[4] or []), record)


def _several(kinds: list[str]) -> Rejection:
    return Rejection("several_instants", f"{' and '.join(kinds[:2])} contradict: keep one.")


def _fired_before(headers: Headers) -> FiredBefore:
    """Belfry's headers about the fire that wrote a record; of two headers the later one."""
    last = {name: given for name, given in headers if given is not None}
    return FiredBefore(*map(last.get, (TENANT, FIRE_ID, REDRIVEN, EVENT_TYPE, GROUP)))


def _is_unknown(name: str) -> bool:
    """Whether a header has a name of belfry's that belfry does not know."""
    if name[:7].lower() != PREFIX or name in KNOWN:
        return False
    return not name.startswith(ORIGIN_PREFIX)


def _unknown(name: str) -> Rejection:
    """Refuse a header that may be a misspelt field."""
    given = _plain(name).removeprefix(PREFIX)
    names = [each.removeprefix(PREFIX) for each in sorted(PROTOCOL)]
    close = [_ELSEWHERE[given]] if given in _ELSEWHERE else get_close_matches(given[:100], names, 1)
    nearest = PREFIX + close[0].removeprefix(PREFIX) if close else ""
    meant = f"; did you mean {nearest}?" if nearest else "."
    return Rejection(
        "unknown_header",
        f"Unknown header {name[:60]}{meant} Known are {', '.join(sorted(PROTOCOL))}. Names that"
        " begin with belfry- are belfry's own: give a header of yours another name.",
    )


def _whole(fields: dict[str, Any], kinds: list[str]) -> Request | Rejection:
    if "tenant" not in fields:
        return Rejection("no_tenant", "Header belfry-tenant is missing: it names the tenant.")
    if "schedule_id" not in fields:
        return Rejection("bad_schedule_id", "Header belfry-id is missing: it names the schedule.")
    fields["action"] = fields["action"].upper()
    if fields["action"] == "ACK":
        return _acknowledgement(fields)
    if fields["action"] in ("UPSERT", "CREATE"):
        if not kinds:
            return Rejection("no_instant", f"One of {', '.join(WHEN)} has to say when.")
        if len(kinds) > 1:
            return _several(kinds)
    request: Request = fields  # type: ignore[assignment]  # OTHERS and WHEN name its fields
    return request


def _acknowledgement(fields: dict[str, Any]) -> Request | Rejection:
    """An ACK names its fire as the fired record does, in a header that otherwise is the user's."""
    given = [each["value"] for each in fields["headers"] if each["name"] == FIRE_ID]
    try:
        fields["fire_id"] = (given[-1] or b"").decode() if given else None
    except UnicodeDecodeError:
        return Rejection("bad_header", f"Header {FIRE_ID} is no UTF-8: {given[-1]!r:.80}.")
    request: Request = fields  # type: ignore[assignment]  # OTHERS and WHEN name its fields
    return request
