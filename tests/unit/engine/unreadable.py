"""Schedules that another release or newer time zone data made, and a schema: unreadable here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from belfry.engine import compiled_rule
from belfry.schedules import triggers
from belfry.schedules.rule import Rule, encode_rule
from belfry.schedules.triggers import clock, zones
from belfry.store import readable
from belfry.store.layout.day_files import reference_to
from belfry.store.layout.day_reference import DAY_MS, DayFile
from belfry.store.layout.pending import KIND_CODES, Pending, decode_pending, encode_pending

RECURSIVE = {
    "type": "record",
    "name": "ScheduleRequest",
    "fields": [{"name": "again", "type": ["null", "ScheduleRequest"]}],
}
ZONE = "Europe/Paris"
LIVES = 1 << 40
ZONES = Callable[[bool], None]
KNOWN = (
    *(triggers._trigger_of, compiled_rule.compiled_bare, clock.clock, zones.zone),
    *(zones._unknown, readable._why),
)


def newer_rule() -> bytes:
    """A rule with a field that a later release has added: a number in bit 31."""
    rule = encode_rule(Rule("EVERY", when=60_000))
    bits = int.from_bytes(rule[2:4], "big") | 1 << 7
    return rule[:2] + bits.to_bytes(2, "big") + b"\x80\0" + rule[4:] + bytes(8)


def zoned_rule() -> bytes:
    """A rule by the clock of `ZONE`."""
    return encode_rule(Rule("CRON", when="0 9 * * *", timezone=ZONE))


def pending(
    rule: bytes, schedule_id: str, due_ms: int, tenant: str = "demo", **fields: int
) -> bytes:
    """The record of a schedule with this rule, as its worker wrote it."""
    row = Pending(
        *(due_ms, due_ms, due_ms - 1, fields.get("seq", 0), LIVES, 1, 0),
        *(fields.get("kind", KIND_CODES["EVERY"]), 0, 0),
        tenant.encode(),
        schedule_id.encode(),
        b"",
        b"",
        None,
        b"",
        rule,
        schedule_id.encode(),
    )
    return encode_pending(row, fields.get("flags", 0))


@pytest.fixture
def zone_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[ZONES]:
    """Takes `ZONE` out of the zone database, or puts it back."""

    def forget() -> None:
        for known in KNOWN:
            known.cache_clear()

    everything = zones.names()

    def publish(known: bool) -> None:
        less = everything if known else everything - {ZONE}
        monkeypatch.setattr(zones, "names", lambda: less)
        forget()

    yield publish
    monkeypatch.undo()
    forget()


def filed(due_ms: int, seq: int) -> bytes:
    """The record of the schedule `filed`, whose payload lies in a day file."""
    row = decode_pending(pending(b"", "filed", due_ms, seq=seq, kind=0))
    stands = reference_to(DayFile(due_ms // DAY_MS, 0, bytes(8)), 30, b"a payload")
    return encode_pending(row._replace(payload=stands))
