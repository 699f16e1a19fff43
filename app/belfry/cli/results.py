"""Verdicts and fired events as commands print them, for people and for programs.

Both are values of `belfry.client`. A line for people says what happened, to what, and when:

    ACCEPTED demo/hello, version 1, due 2026-12-01T09:00:00.000Z (in 4s)        a verdict
    2026-12-01T09:00:00.000Z  hello #0  hello, belfry                           an event

JSON has the names of the Avro schemas. Bytes come as ``…_text`` where they are text, and as
``…_json`` as well where they are a JSON object or array, otherwise as ``…_base64``; so a program
never has to guess how bytes were written. Texts of strangers are made harmless (`plain`).
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from belfry.cli.shown import from_now, instant_json, plain
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome

if TYPE_CHECKING:
    from belfry.client import FiredRecord, Verdict


def bytes_text(value: bytes | None) -> str:
    """Bytes for people: text where they are text, otherwise base64."""
    if value is None:
        return "null"
    try:
        return plain(value.decode())
    except UnicodeDecodeError:
        return f"base64:{b64encode(value).decode()}"


def bytes_json(name: str, value: bytes | None) -> dict[str, Any]:
    """Bytes for programs, under a name that shows their form.

    ``bytes_json("payload", b'{"a": 1}')`` gives `payload_text` and `payload_json`. Bytes that are
    not UTF-8 come as `payload_base64` alone, and a null value as `payload_text` null.
    """
    import orjson

    if value is None:
        return {f"{name}_text": None}
    try:
        found: dict[str, Any] = {f"{name}_text": value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}
    if value[:1] in (b"{", b"["):
        with suppress(orjson.JSONDecodeError):
            found[f"{name}_json"] = orjson.loads(value)
    return found


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict with the names of `LifecycleEvent`."""
    same = "request_id fire_id version generation code source_topic source_partition source_offset"
    return {
        "tenant": _whole(verdict.tenant),
        "schedule_id": _whole(verdict.schedule_id),
        "outcome": verdict.outcome,
        "at": instant_json(verdict.at_ms),
        "due_at": instant_json(verdict.due_ms),
        "reason": None if verdict.reason is None else _whole(verdict.reason),
        **{name: getattr(verdict, name) for name in same.split()},
    }


def _whole(text: str) -> str:
    """A refused name may hold bytes of the command line that are no UTF-8; JSON cannot."""
    return text.encode(errors="backslashreplace").decode()


def verdict_text(verdict: Verdict, now_ms: int) -> str:
    """A verdict in a line; one without outcome says where the request was written."""
    name = plain(verdict.name)
    if verdict.outcome is None:
        place = f"{verdict.source_partition}@{verdict.source_offset}"
        return f"SENT {name}, {verdict.source_topic} {place}, request id {verdict.request_id}"
    parts = [f"{verdict.outcome} {name}"]
    if verdict.version is not None:
        parts.append(f"version {verdict.version}")
    if verdict.due_ms is not None:
        due = format_instant(verdict.due_ms)
        word = "was due" if verdict.outcome is Outcome.CANCELLED else "due"
        parts.append(f"{word} {due} ({from_now(verdict.due_ms, now_ms)})")
    why = f": {verdict.reason}" if verdict.reason else ""
    return ", ".join(parts) + plain(why)


def event_json(event: FiredRecord) -> dict[str, Any]:
    """A fired event with everything that its record holds."""
    return {
        "fire_id": event.fire_id,
        "schedule_id": event.schedule_id,
        "scheduled_at": instant_json(event.scheduled_at_ms),
        "occurrence": event.occurrence,
        "source": event.source and event.source._asdict(),
        "topic": event.topic,
        "partition": event.partition,
        "offset": event.offset,
        "timestamp": instant_json(event.timestamp_ms),
        **bytes_json("key", event.key),
        "headers": [{"name": n, **bytes_json("value", v)} for n, v in event.headers],
        **bytes_json("payload", event.payload),
    }


def event_text(event: FiredRecord) -> str:
    """A fired event in a line: when it was due, which it is, and what it says."""
    scheduled = instant_json(event.scheduled_at_ms) or "-"
    which = plain(event.schedule_id or "-")
    number = "" if event.occurrence is None else f" #{event.occurrence}"
    return f"{scheduled}  {which}{number}  {bytes_text(event.payload)}"
