"""Values in words: instants, durations, lateness and payloads.

    2026-12-01T09:00:00.250Z   2026-12-01 09:00:00.250 UTC, and by the clocks of a named zone
    7 500 000 ms               2 h 5 min
    the payload "hi"           Text: hi    Hex: 00000000  68 69  hi

An instant never stands without its zone, for a reader may sit anywhere. Durations have two units at
most, so they can be compared at a glance. Payloads are cut at `MOST_SHOWN_BYTES`, and say so.

Pure: instants come as the API gives them, RFC 3339 in UTC.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

MOST_SHOWN_BYTES: Final = 4096
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
# Fields that the API leaves out of a schedule without them.
OPTIONAL: Final = (
    "kind",
    "event_type",
    "group",
    "unreadable",
    "waiting_reason",
    "due_at",
    "http_targets",
    "fires",
)
WHEN: Final = ("at", "delay_ms", "interval_ms", "cron", "rrule", "after_ack", "after_group")


def parsed(instant: str) -> datetime:
    """The instant that the API wrote."""
    return datetime.fromisoformat(instant)


def epoch_ms(instant: str) -> int:
    """The same in epoch milliseconds."""
    return round(parsed(instant).timestamp() * 1000)


def in_utc(instant: str) -> str:
    """``2026-12-01 09:00:00.250 UTC``; milliseconds only where there are some."""
    return f"{_clock(parsed(instant).astimezone(UTC))} UTC"


def in_zone(instant: str, zone: str) -> str:
    """The same by the clocks of a zone, with the zone's name."""
    try:
        return f"{_clock(parsed(instant).astimezone(ZoneInfo(zone)))} {zone}"
    except (ValueError, OSError, KeyError):
        return in_utc(instant)


def _clock(moment: datetime) -> str:
    """Date and time of day, without a zone."""
    exact = "milliseconds" if moment.microsecond else "seconds"
    return moment.replace(tzinfo=None).isoformat(" ", exact)


def duration(ms: float) -> str:
    """A duration with two units at most: ``250 ms``, ``1.5 s``, ``2 h 5 min``."""
    rest = abs(round(ms))
    if rest < 1000:
        return f"{round(ms)} ms"
    if rest < 60_000:
        return f"{ms / 1000:.3g} s"
    parts: list[str] = []
    for unit, size in _UNITS:
        if rest >= size and len(parts) < 2:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return ("-" if ms < 0 else "") + " ".join(parts)


def lateness(due_at: str | None, at: str | None) -> str:
    """How long after its due instant something happened; a dash where it cannot be said."""
    if due_at is None or at is None:
        return "–"
    return duration(epoch_ms(at) - epoch_ms(due_at))


def filled(schedule: dict[str, Any]) -> dict[str, Any]:
    """A schedule as the API shows it, with None for fields that are left out."""
    return dict.fromkeys(OPTIONAL) | schedule


def payload_of(shown: dict[str, Any]) -> bytes | None:
    """The bytes of a payload; None without a payload."""
    text, coded = shown.get("payload_text"), shown.get("payload_base64")
    if text is not None:
        return str(text).encode()
    return None if coded is None else b64decode(coded)


def may_be_avro(raw: bytes | None) -> bool:
    """Whether bytes begin as Avro does that names its schema."""
    return raw is not None and (raw[:1] == b"\0" or raw[:2] == b"\xc3\x01")


def as_json(value: Any) -> str:
    """A value as JSON in lines, cut where it is long."""
    return _cut(json.dumps(value, indent=2, ensure_ascii=False))


def payload_views(shown: dict[str, Any]) -> dict[str, str]:
    """A payload as text, as JSON where it is JSON, and in hex; cut where it is long."""
    text, raw = shown.get("payload_text"), payload_of(shown)
    if raw is None:
        return {}
    views = {} if text is None else {"Text": _cut(text)}
    if "payload_json" in shown:
        views["JSON"] = as_json(shown["payload_json"])
    views["Hex"] = hex_dump(raw[:MOST_SHOWN_BYTES])
    return views


def hex_dump(raw: bytes) -> str:
    """Sixteen bytes a line: offset, hex, and printable characters."""
    lines = []
    for start in range(0, len(raw), 16):
        part = raw[start : start + 16]
        printed = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<47}  {printed}")
    return "\n".join(lines)


def hex_dump_of(coded: str) -> str:
    """The same of bytes in base64; cut where they are many."""
    return hex_dump(b64decode(coded)[:MOST_SHOWN_BYTES])


def _cut(text: str) -> str:
    """A text that is not too long for a page, and how much of it is left out."""
    if len(text) <= MOST_SHOWN_BYTES:
        return text
    return f"{text[:MOST_SHOWN_BYTES]}\n… {len(text) - MOST_SHOWN_BYTES} characters more"


def quantile_ms(buckets: Iterable[tuple[float, float]], share: float) -> float | None:
    """Upper bound in ms of the bucket that holds this share; None without a count.

    Buckets are (upper bound in seconds, count of all up to it), as Prometheus shows them.
    """
    rows = sorted(buckets)
    if not rows or not rows[-1][1]:
        return None
    wanted = rows[-1][1] * share
    finite = [bound for bound, _ in rows if bound != float("inf")]
    for bound, count in rows:
        if count >= wanted:
            return 1000 * (bound if bound != float("inf") else finite[-1])
    return None
