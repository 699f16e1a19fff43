"""Bulk jobs: one action on all schedules of a tenant that a filter matches.

A job is asked for by a request whose action is ``BULK``; its `schedule_id` is the id of the job.
The field `bulk` holds the action and the filter, as a JSON object:

    {"action": "CANCEL", "prefix": "order/", "group": "eu", "state": "PENDING", "per_second": 500}

| name | meaning |
|---|---|
| `action` | one of `CANCEL`, `PAUSE`, `RESUME`, `MOVE`, `TRIGGER`, `BACKFILL`, `REKEY` |
| `schedule_id` | this schedule alone |
| `prefix`, `group`, `event_type` | how the ids begin; the group; the type |
| `due_from`, `due_until` | due then or later; due before then (epoch ms) |
| `state` | `PENDING` or `PAUSED`; none: both |
| `move_ms` | MOVE: by how much later, or earlier where it is negative |
| `range_from`, `range_until` | BACKFILL: occurrences then or later; before then (epoch ms) |
| `key` | REKEY: the id of the key that is to encrypt; none: the newest of each worker |
| `per_second` | how many schedules a second (BACKFILL: occurrences), of all partitions together |

``BULK_STOP`` ends a job: what it has done stays.  An empty filter matches all pending schedules of
the tenant.

Conditions are joined by *and*: the example cancels schedules whose id begins with ``order/``, in
the group ``eu``, that are not paused.  The rate bounds how many schedules a job touches in a
second, so that a job of a million schedules leaves room for events that are due.  This module only
reads a job; `engine/jobs.py` carries it out.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEARS_100_MS
from belfry.schedules.json_field import JsonField
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import MAX_TEXT_BYTES, Request

BULK: Final = "BULK"
BULK_STOP: Final = "BULK_STOP"
BULK_ACTIONS: Final = frozenset({BULK, BULK_STOP})
MOVE: Final = "MOVE"
BACKFILL: Final = "BACKFILL"
REKEY: Final = "REKEY"
JOB_ACTIONS: Final = ("CANCEL", "PAUSE", "RESUME", MOVE, "TRIGGER", BACKFILL, REKEY)
# Actions that fire events: they wait while nothing of the tenant can fire.
FIRING: Final = frozenset({"TRIGGER", BACKFILL})
JOB_STATES: Final = ("PENDING", "PAUSED")
PER_SECOND: Final = 500
MOST_PER_SECOND: Final = 10_000
MOST_BYTES: Final = 4_000
_EXAMPLE: Final = '{"action": "CANCEL", "prefix": "order/"}'
_TEXTS: Final = ("schedule_id", "group", "event_type")
_RANGE: Final = ("range_from", "range_until")
_NUMBERS: Final = ("due_from", "due_until", "move_ms", *_RANGE)
_KEY: Final = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSpec:
    """The action of a job, and the schedules that it concerns; instants in epoch milliseconds.

    The table above has the meaning of each field.  Ranges are half open: `due_from` and
    `range_from` are inclusive, `due_until` and `range_until` are not.
    """

    action: str
    schedule_id: str | None = None
    prefix: str = ""
    group: str | None = None
    event_type: str | None = None
    due_from: int | None = None
    due_until: int | None = None
    state: str | None = None
    move_ms: int | None = None
    range_from: int | None = None
    range_until: int | None = None
    key: str | None = None
    per_second: int = PER_SECOND

    def text(self) -> str:
        """The same as a request's field holds it, without parts that are not given."""
        said = {name: value for name, value in asdict(self).items() if value not in (None, "")}
        return json.dumps(said, ensure_ascii=False)


_FIELD: Final = JsonField(
    BULK, MOST_BYTES, tuple(field.name for field in fields(BulkSpec)), _EXAMPLE
)


def read_bulk(text: str | None) -> BulkSpec | Rejection:
    """The content of a request's field `bulk`, or why it cannot be read (`bad_bulk`).

    A name with the value null counts as not given.
    """
    said = _FIELD.read(text)
    if isinstance(said, str):
        return _bad(said)
    said = {name: value for name, value in said.items() if value is not None}
    why = _wrong(said)
    return _bad(why) if why else BulkSpec(**said)


def bulk_problem(request: Request) -> Rejection | None:
    """Why a request's job is not allowed, or None."""
    action, job = request["action"], request["bulk"]
    if action != BULK:
        return None if job is None else _bad(f"is for BULK, and not for {action}")
    found = read_bulk(job)
    return found if isinstance(found, Rejection) else None


def _wrong(said: dict[str, Any]) -> str:
    """What is wrong with the values, or nothing."""
    action, state = said.get("action"), said.get("state")
    if action not in JOB_ACTIONS:
        return f"has the action {_shown(action)}: give one of {', '.join(JOB_ACTIONS)}"
    if state is not None and state not in JOB_STATES:
        return f"has the state {_shown(state)}: give {' or '.join(JOB_STATES)}, or none for both"
    prefix = said.get("prefix", "")
    if not _is_text(prefix, least=0):
        return f"has the prefix {_shown(prefix)}: give up to {MAX_TEXT_BYTES} bytes of UTF-8"
    for name in _TEXTS:
        if name in said and not _is_text(said[name], least=1):
            return f"has the {name} {_shown(said[name])}: give 1-{MAX_TEXT_BYTES} bytes of UTF-8"
    if prefix and "schedule_id" in said:
        return "has a prefix and a schedule_id: keep one"
    return _wrong_numbers(said) or _wrong_range(said) or _wrong_key(said)


def _wrong_numbers(said: dict[str, Any]) -> str:
    for name in _NUMBERS:
        if name in said and not _is_number(said[name], 2 * YEARS_100_MS):
            return f"has the {name} {_shown(said[name])}: give whole milliseconds"
    rate = said.get("per_second", PER_SECOND)
    if not _is_number(rate, MOST_PER_SECOND) or rate < 1:
        return f"has the per_second {_shown(rate)}: give 1 to {MOST_PER_SECOND}"
    moves = "move_ms" in said
    if moves is not (said["action"] == MOVE):
        return "has a move_ms, and its action is not MOVE" if moves else "lacks move_ms, for a MOVE"
    if moves and (not said["move_ms"] or abs(said["move_ms"]) > YEARS_100_MS):
        return "has a move_ms that is 0, or more than 100 years"
    return ""


def _wrong_range(said: dict[str, Any]) -> str:
    given = [name for name in _RANGE if name in said]
    if said["action"] != BACKFILL:
        return f"has a {given[0]}, and its action is not BACKFILL" if given else ""
    if len(given) < len(_RANGE):
        return "lacks range_from or range_until, for a BACKFILL"
    if said["range_from"] < SECONDS_LIMIT:
        return f"has the range_from {said['range_from']}: give epoch milliseconds, 2001 or later"
    if said["range_from"] >= said["range_until"]:
        return "has a range_from that is not before its range_until"
    return ""


def _wrong_key(said: dict[str, Any]) -> str:
    key = said.get("key")
    if key is None:
        return ""
    if said["action"] != REKEY:
        return "has a key, and its action is not REKEY"
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        return f"has the key {_shown(key)}: give the 16 hexadecimal digits of its id, or none"
    return ""


def _is_text(value: Any, least: int) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return least <= len(value.encode()) <= MAX_TEXT_BYTES
    except UnicodeEncodeError:
        return False


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= most


def _shown(value: Any) -> str:
    return repr(value)[:60]


def _bad(why: str) -> Rejection:
    return Rejection("bad_bulk", f"bulk {why}.")
