"""Headers and bytes of records: misspelt names, values and frames that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.wire import catalogue, framing
from belfry.wire.record import Headers
from tests.attack.family import Attack, judge
from tests.attack.records import Engines, Record
from tests.unit.engine.driver import HOUR, T0, request

OURS: Final = (
    *(
        "tenant",
        "id",
        "action",
        "group",
        "type",
        "request-id",
        "timezone",
        "at",
        "in",
        "every",
        "cron",
    ),
)


def misspelt() -> Iterator[str]:
    """Names that begin with belfry- and are none of belfry's."""
    for name in OURS:
        for at in range(len(name)):
            yield name[:at] + name[at + 1 :]
            yield name[:at] + "x" + name[at:]
            yield name[:at] + name[at].upper() + name[at + 1 :]
        yield name + " "
        yield name + "\x00"
    yield from ("", "-", "tz", "jitter-ms", "origin", "claims", "internal", "admin", "tenant-id")


def header_names() -> Iterator[Attack[Record]]:
    """A misspelt header of belfry's is refused, never passed over."""
    for name in sorted(set(misspelt()) - set(OURS)):
        headers: Headers = [
            *(("belfry-tenant", b"demo"), ("belfry-id", b"h"), ("belfry-in", b"1h")),
            (f"belfry-{name}", b"1"),
        ]
        yield Attack(f"header belfry-{name!r}", Record(b"v", None, headers), "unknown_header")


def header_values() -> Iterator[Attack[Record]]:
    """Values of the header protocol that cannot be read."""
    good: dict[str, bytes | None] = {"belfry-tenant": b"demo", "belfry-id": b"v"}
    no_utf8, nothing = b"\xff\xfe", None
    for name, value, right in (
        *((n, v, "bad_header") for n in ("belfry-at",) for v in (b"", b"x", b"tomorrow", no_utf8)),
        *(
            ("belfry-at", v, "bad_header")
            for v in (b"2030-01-01T00:00:00", b"2030-13-01T00:00:00Z", b"NaN")
        ),
        *(
            ("belfry-at", v, "bad_header")
            for v in (b"2030-01-01", b"1e13", b"0x10", b"2030-02-30T00:00:00Z")
        ),
        *(
            ("belfry-in", v, "bad_header")
            for v in (b"", b"x", b"5 parsecs", no_utf8, b"PT", b"inf")
        ),
        *(("belfry-every", v, "bad_header") for v in (b"", b"x", b"P", no_utf8, b"NaN", b"1..5s")),
        *((f"belfry-{n}", nothing, "no_instant") for n in ("at", "in", "every", "cron")),
        ("belfry-at", b"1800000000", "instant_in_seconds"),
        ("belfry-in", b"9" * 400, "bad_header"),
        ("belfry-every", b"0", "bad_interval"),
        ("belfry-cron", b"* * *", "bad_cron"),
    ):
        headers = list({**good, name: value}.items())
        yield Attack(f"{name} {value!r}"[:90], Record(b"v", None, headers), right)
    for name, right in (("belfry-tenant", "bad_header"), ("belfry-id", "bad_header")):
        headers = list({**good, "belfry-in": b"1h", name: no_utf8}.items())
        yield Attack(f"{name} no UTF-8", Record(b"v", None, headers), right)
    both: Headers = [*good.items(), ("belfry-in", b"1h"), ("belfry-every", b"1h")]
    yield Attack("two instants", Record(b"v", None, both), "several_instants")
    yield Attack("no instant", Record(b"v", None, list(good.items())), "no_instant")


def frames() -> Iterator[Attack[Record]]:
    """A request cut at each byte, with bytes behind it, and in frames that are none."""
    whole = request(at=T0 + HOUR, payload=b"p" * 40, headers=[{"name": "h", "value": b"v"}])
    head = len(framing.single_object("ScheduleRequest"))
    for size in range(len(whole)):
        short = "not_a_request" if size <= head else "truncated"
        yield Attack(f"cut at {size}", Record(whole[:size]), short)
    for more in (b"\0", b"x" * 9, whole):
        yield Attack(f"{len(more)} bytes more", Record(whole + more), "truncated")
    for name, value in {
        "null": None,
        "json": b'{"tenant": "demo"}',
        "text": b"hello",
        "zeros": bytes(100),
        "xml": b"<a/>",
        "gzip": b"\x1f\x8b\x08" + bytes(20),
        "java": b"\xac\xed\x00\x05sr",
        "pickle": b"\x80\x05cos\nsystem\n.",
    }.items():
        right = "unknown_schema_id" if name == "zeros" else "not_a_request"
        yield Attack(f"value {name}", Record(value), right)
    for mark in (b"\xc3\x01" + bytes(8), b"\xc3\x01" + b"\xff" * 8):
        yield Attack(f"fingerprint {mark!r}", Record(mark + b"x"), "unknown_schema_fingerprint")
    for number in (1, 2**31 - 1, 2**32 - 1):
        raw = b"\0" + number.to_bytes(4, "big") + b"x"
        yield Attack(f"schema {number}", Record(raw), "unknown_schema_id")
    fine = catalogue.encode("ScheduleRequest", {"tenant": "demo", "schedule_id": "a"})
    for count in (b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x01", b"\xfe\xff\xff\xff\x0f"):
        # A length that no record can have, in place of that of the tenant's name.
        bomb = whole[:head] + count + fine[1:]
        yield Attack(f"length {count!r}", Record(bomb), "truncated")
    yield Attack("too large", Record(b"x" * 1_200_000), "request_too_large")


def test_names_of_headers() -> None:
    judge(header_names(), Engines(), 100)


def test_values_of_headers() -> None:
    judge(header_values(), Engines(), 30)


def test_bytes_of_values() -> None:
    judge(frames(), Engines(), 100)
