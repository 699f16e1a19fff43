"""Whether a pending record can be fired here; what cannot be read is told, never guessed."""

from __future__ import annotations

import pytest

from belfry.client.portable import UnreadableSchedule, portable
from belfry.schedules.rule import Rule, encode_rule
from belfry.store.layout.pending import KIND_CODES
from belfry.store.layout.pending_bytes import with_flags
from belfry.store.layout.records import Marker, encode_marker
from belfry.store.readable import note_unreadable, why_unreadable, why_unreadable_rule
from tests.unit.engine.driver import T0
from tests.unit.engine.unreadable import ZONES, newer_rule, pending, zone_known, zoned_rule

__all__ = ["zone_known"]
CRON = KIND_CODES["CRON"]
EVERY = encode_rule(Rule("EVERY", when=1))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (pending(newer_rule(), "a", T0), "Run the version that wrote it"),
        (pending(b"\2" + EVERY[1:], "a", T0), "this version reads format 1"),
        (pending(EVERY[:4], "a", T0), "an interval of nothing never gets anywhere"),
        (pending(encode_rule(Rule("AT", misfire="SKIP"))[:-1] + b"\x09", "a", T0), "index"),
        (pending(b"", "a", T0, kind=7), "its kind 7 is of a later release"),
        (pending(b"", "a", T0), "has no rule"),
        (pending(EVERY, "a", T0, flags=64), "its flags 01000000 are of a later release"),
    ],
)
def test_what_is_not_understood_has_a_reason(record: bytes, why: str) -> None:
    assert why in why_unreadable(record)
    found: dict[bytes, str] = {}
    note_unreadable(found, [(b"t/a", record)])
    assert found == {b"t/a": why_unreadable(record)}, "a fold notes what a look would tell"


def test_a_rule_that_begins_beyond_all_calendars_stops_no_take_over() -> None:
    """Making its trigger raises no error of a value, but one of a number."""
    rule = encode_rule(Rule("RRULE", when="FREQ=DAILY", start_at=2**63 - 1))
    record = pending(rule, "a", T0, kind=KIND_CODES["RRULE"])
    assert "too large" in why_unreadable(record)


def test_no_rule_can_be_followed_by_everybody() -> None:
    assert why_unreadable_rule(b"") == ""
    assert why_unreadable_rule(EVERY) == ""
    assert why_unreadable_rule(EVERY[:3])


def test_what_is_understood_has_none() -> None:
    for kind in ("AT", "AFTER"):
        plain = pending(b"", "a", T0, kind=KIND_CODES[kind])
        assert why_unreadable(plain) == why_unreadable(with_flags(plain, 1)) == ""
    assert why_unreadable(pending(zoned_rule(), "a", T0, kind=CRON)) == ""


def test_a_zone_is_looked_for_in_this_workers_data(zone_known: ZONES) -> None:
    record = pending(zoned_rule(), "a", T0, kind=CRON)
    zone_known(False)
    assert "'Europe/Paris' is no IANA time zone of release" in why_unreadable(record)
    zone_known(True)
    assert why_unreadable(record) == ""


def test_a_changelog_is_kept_up_with() -> None:
    found: dict[bytes, str] = {}
    newer = pending(newer_rule(), "a", T0)
    note_unreadable(found, [(b"t/a", newer), (b"t/b", newer), (b"t/c", newer), (b"\0m\0\1", b"x")])
    assert sorted(found) == [b"t/a", b"t/b", b"t/c"]
    over = encode_marker(Marker(0, T0, T0, 1, 1, 1))
    note_unreadable(found, [(b"t/a", None), (b"t/b", over), (b"t/c", pending(EVERY, "c", T0))])
    assert found == {}


def test_an_export_says_what_it_cannot_tell() -> None:
    with pytest.raises(UnreadableSchedule, match="demo/a is of a later release"):
        portable(pending(newer_rule(), "a", T0))


def test_an_export_needs_no_zone(zone_known: ZONES) -> None:
    zone_known(False)
    assert portable(pending(zoned_rule(), "a", T0, kind=CRON))["timezone"] == "Europe/Paris"
