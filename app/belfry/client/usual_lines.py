"""Lines of backups and exports that need no reader of JSON.

Most lines are of schedules that fire once, as `portable_lines` writes them:

    {"tenant":"t","schedule_id":"a","kind":"AT","at":"2030-01-01T00:00:00.000Z",
     "payload_text":"plain ASCII",
     "standing":{"next_at":"…","occurrence":0,"version":1,"paused":false}}

One look of an expression takes such a line apart. `is_usual` says that it can be restored, for a
restore looks at its whole file before it writes anything. `ready_of` makes the bytes of its request
at a quarter of what it costs by way of a dictionary, where no check would refuse it:

    line ─► expression ─► names, instants and numbers as checks want them ─► `Ready`
              │ no            │ no
              └───────────────┴──► `request_fields` ─► checks ─► encoder, as ever

The expression knows no escapes, no text beyond ASCII and no other order of fields.  A property test
compares whatever it lets pass with the way for all lines.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from belfry.schedules.instants import parse_instant
from belfry.schedules.request import MAX_TEXT_BYTES, tenant_problem
from belfry.schedules.rule_checks import MOST_STOOD
from belfry.wire.quick_writing import Ready, Standing, ready_request

_TEXT: Final = rb'"([ !#-\[\]-~]*+)"'
_INSTANT: Final = rb'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z)"'
_NUMBER: Final = rb"(0|[1-9][0-9]{0,17})"
_OPTIONAL: Final = b"".join(
    rb'(?:"%b":%b,)?' % (name, value)
    for name, value in (
        (b"jitter_ms", _NUMBER),
        (b"event_type", _TEXT),
        (b"group", _TEXT),
        (b"key_text", _TEXT),
        (b"payload_text", _TEXT),
    )
)
_USUAL: Final = re.compile(
    rb'{"tenant":%b,"schedule_id":%b,"kind":"AT","at":%b,%b'
    rb'"standing":{"next_at":%b,"occurrence":%b,"version":%b,"paused":(true|false)}}\n'
    % (_TEXT, _TEXT, _INSTANT, _OPTIONAL, _INSTANT, _NUMBER, _NUMBER)
)
# Where the two instants are among the groups.
_AT: Final = 3
_NEXT_AT: Final = 9
# Between these no clock of our time finds an instant too early, or too far ahead.
_LEAST_MS: Final = parse_instant("2002-01-01T00:00:00Z")
_MOST_MS: Final = parse_instant("2099-12-31T00:00:00Z")


def is_usual(line: bytes) -> bool:
    """Whether a line is that of a schedule that can be restored; False where it has to be read."""
    found = _USUAL.fullmatch(line)
    return (
        found is not None
        and _instant(found[_AT]) is not None
        and _instant(found[_NEXT_AT]) is not None
    )


def ready_of(line: bytes) -> Ready | None:
    """The request of a line that no check refuses; None where it has to be read and checked."""
    found = _USUAL.fullmatch(line)
    if found is None:
        return None
    (tenant, schedule_id, at, jitter, event_type, group, key, payload, next_at, occurrence, version,
     paused) = found.groups()  # fmt: skip
    at_ms, next_at_ms, number, changes = (
        _instant(at),
        _instant(next_at),
        int(occurrence),
        int(version),
    )
    if (
        jitter is not None
        or at_ms is None or not _LEAST_MS <= at_ms <= _MOST_MS
        or next_at_ms is None or not _LEAST_MS <= next_at_ms <= _MOST_MS
        or number >= MOST_STOOD or not 1 <= changes <= MOST_STOOD
        or not 1 <= len(schedule_id) <= MAX_TEXT_BYTES
        or not _is_tenant(tenant) or _is_no_name(event_type) or _is_no_name(group)
    ):  # fmt: skip
        return None
    standing = Standing(next_at_ms, number, changes, paused == b"true")
    return ready_request(tenant, schedule_id, at_ms, (event_type, group, key, payload), standing)


# Most schedules say the same instant twice, and there are few tenants.
@lru_cache(maxsize=16)
def _instant(text: bytes) -> int | None:
    try:
        return parse_instant(text.decode())
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _is_tenant(name: bytes) -> bool:
    return tenant_problem(name.decode()) is None


def _is_no_name(text: bytes | None) -> bool:
    return text is not None and not 1 <= len(text) <= MAX_TEXT_BYTES
