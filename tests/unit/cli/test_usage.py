"""`belfry tenant usage` shows a period for programs and for people."""

from __future__ import annotations

from belfry.cli.usage import HEADING, line, shown
from belfry.wire.metering import Usage
from tests.unit.engine.driver import HOUR, T0

USED = Usage(
    tenant="acme", from_ms=T0, until_ms=T0 + HOUR, accepted=1_200, fired=3, held_byte_ms=HOUR * 250
)


def test_programs_get_byte_hours_and_what_they_come_from() -> None:
    found = shown(USED)
    assert found["from"] == "2027-01-15T08:00:00.000Z"
    assert (found["held_byte_ms"], found["held_byte_hours"]) == (HOUR * 250, 250.0)


def test_a_line_stands_below_its_heading() -> None:
    told = line(USED)
    assert told.split() == ["2027-01-15T08:00:00.000Z", "acme", "1,200", "3", "0", "250.0"]
    assert len(told) == len(HEADING)
