"""Requests whose names, numbers and symbols are not allowed, by docs/rejections.md."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from belfry.schedules.targets import record_of
from tests.attack.family import Attack, judge
from tests.attack.records import TAKEN, Engines, Record, asked
from tests.unit.engine.driver import HOUR, T0

YEAR: Final = 366 * 24 * HOUR
I64: Final = 2**63 - 1
LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def tenants() -> Iterator[Attack[Record]]:
    """1-100 of A-Z a-z 0-9 _ -, with single dots inside."""
    for code in range(1, 0x250):
        sign = chr(code)
        right = TAKEN if sign in LETTERS or sign == "." else "bad_tenant"
        yield asked(f"tenant with U+{code:04x}", right, tenant=f"t{code}{sign}b")
    for name, tenant in {
        "dots": "a..b",
        "dot first": ".a",
        "dot last": "a.",
        "dot": ".",
        "two dots": "..",
        "101": "a" * 101,
        "a million": "a" * 900_000,
        "newline last": "a\n",
        "path": "../a",
        "slash": "a/b",
        "percent": "a%2fb",
        "wild": "*",
        "full width": "\uff41",
        "homoglyph": "p\u0430yments",
        "joiner": "a\u200db",
        "right to left": "a\u202eb",
    }.items():
        yield asked(f"tenant: {name}", "bad_tenant", tenant=tenant)
    yield asked("tenant: none", "no_tenant", tenant="")
    yield asked("tenant: 100", TAKEN, tenant="a" * 100)


def ids() -> Iterator[Attack[Record]]:
    """1-255 bytes of UTF-8 without control characters; a slash is allowed."""
    for code in range(0x250):
        sign = chr(code)
        right = "bad_schedule_id" if unicodedata.category(sign) == "Cc" else TAKEN
        yield asked(f"id with U+{code:04x}", right, schedule_id=f"i{code}{sign}b")
    for size, right in (
        (1, TAKEN),
        (255, TAKEN),
        (256, "bad_schedule_id"),
        (9_000, "bad_schedule_id"),
    ):
        yield asked(f"id of {size}", right, schedule_id="x" * size)
        wide = "\u20ac" * (size // 3) + "x" * (size % 3)
        if size > 2:
            yield asked(f"wide id of {size}", right, schedule_id=wide)
    yield asked("id: none", "bad_schedule_id", schedule_id="")
    for name in (
        "../../etc/passwd",
        "a/pause",
        "order/../../x",
        "a?b#c",
        "%2e%2e",
        "'; DROP",
        "${jndi}",
    ):
        yield asked(f"id {name}", TAKEN, schedule_id=name)


def numbers() -> Iterator[Attack[Record]]:
    """Instants, durations and counts out of their bounds."""
    low, far = 10**12, T0 + 101 * YEAR
    for at in (0, 1, -1, -(2**63), low - 1, T0 // 1000, -T0):
        yield asked(f"at {at}", "instant_in_seconds", at=at)
    for at in (far, I64, T0 * 1000, T0 * 1_000_000):
        yield asked(f"at {at}", "instant_too_far", at=at)
    for at in (low, T0 - HOUR, T0, T0 + 99 * 365 * 24 * HOUR):
        yield asked(f"at {at}", TAKEN, at=at)
    for delay in (-1, -(2**63), I64, 101 * YEAR):
        yield asked(f"delay {delay}", "bad_delay", kind="AFTER", at=None, delay_ms=delay)
    for interval in (0, -1, -(2**63), I64, 101 * YEAR):
        yield asked(
            f"interval {interval}", "bad_interval", kind="EVERY", at=None, interval_ms=interval
        )
    for jitter in (-1, -(2**63), I64, 2 * YEAR):
        yield asked(f"jitter {jitter}", "bad_jitter", jitter_ms=jitter)
    for late in (-1, -(2**63), I64, 101 * YEAR):
        yield asked(f"lateness {late}", "bad_max_lateness", max_lateness_ms=late)
    every = {"kind": "EVERY", "at": None, "interval_ms": HOUR}
    for fires in (0, -1, -(2**63), 2**31, I64):
        yield asked(f"fires {fires}", "bad_max_fires", **every, max_fires=fires)
    yield asked("no fire", "bad_window", max_fires=1)
    yield asked("end before start", "bad_window", **every, start_at=T0 + 2 * HOUR, end_at=T0 + HOUR)


def symbols() -> Iterator[Attack[Record]]:
    """Symbols, texts and lists that are not allowed."""
    every = {"kind": "EVERY", "at": None, "interval_ms": HOUR}
    for kind, field in (
        ("AT", "at"),
        ("AFTER", "delay_ms"),
        ("EVERY", "interval_ms"),
        ("CRON", "cron"),
    ):
        yield asked(f"{kind} without {field}", "no_instant", kind=kind, at=None)
    for action in ("UNKNOWN",):
        yield asked(f"action {action}", "unknown_action", action=action)
    yield asked("kind", "unknown_kind", kind="UNKNOWN")
    yield asked("misfire", "unknown_misfire", **every, misfire="UNKNOWN")
    for fire_id in (None, "", "x", "0" * 31, "0" * 33, "g" * 32, "0" * 31 + "\n", "\u0660" * 32):
        yield asked(f"ack {fire_id!r}", "bad_fire_id", action="ACK", fire_id=fire_id)
    for text in ("", "x" * 256, "\u20ac" * 86):
        yield asked(f"group of {len(text)}", "bad_fields", group=text)
        yield asked(f"type of {len(text)}", "bad_fields", event_type=text)
        yield asked(f"request id of {len(text)}", "bad_request_id", request_id=text)
    for url in (
        "ftp://a/",
        "//a",
        "http://a@b/",
        "http://",
        "javascript:x",
        "http://a\\b",
        "http://127.1/",
    ):
        yield asked(f"url {url}", "bad_target", http_targets=[record_of(url)])
    for count in (257, 1_000):
        headers = [{"name": "h", "value": b""}] * count
        yield asked(f"{count} headers", "bad_fields", headers=headers)
    yield asked("long name", "bad_fields", headers=[{"name": "h" * 1025, "value": None}])


def test_names_of_tenants() -> None:
    judge(tenants(), Engines(), 600)


def test_ids_of_schedules() -> None:
    judge(ids(), Engines(), 600)


def test_numbers() -> None:
    judge(numbers(), Engines(), 35)


def test_symbols_and_texts() -> None:
    judge(symbols(), Engines(), 25)
