"""Texts for people to epoch milliseconds and back: instants and durations.

An instant needs its offset from UTC: a local time alone means another instant on every machine, and
none or two in the night when the clocks change.  Fractions of a millisecond are rounded up, because
an event never fires before its instant.  A duration has a fixed length, so months and years are not
durations.  A text that cannot be read raises a ValueError whose sentence shows texts that can.

    2026-12-01T09:00:00Z    2026-12-01T10:00:00.250+01:00    1796115600000
    250ms   30s   5m   1h30m   1.5d   PT5M   P1DT2H   300000

The texts are those of RFC 3339 for instants and of ISO 8601 for durations, without the parts that
have no fixed length; the short durations are like those of systemd.  Numbers are kept exact
until they are rounded, so 0.1 s is 100 ms and not 101.

These functions are for doors: headers, HTTP, command line, client.  Behind a door an instant is a
whole number of milliseconds since 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from math import ceil
from typing import Final

MAX_TEXT: Final = 64
INSTANT_EXAMPLES: Final = (
    "an RFC 3339 date and time with its offset, such as 2026-12-01T09:00:00Z or"
    " 2026-12-01T10:00:00.250+01:00, or epoch milliseconds, such as 1796115600000"
)
PLAIN_MILLISECONDS: Final = "plain milliseconds, such as 300000"
DURATION_EXAMPLES: Final = (
    "units w d h m s ms from large to small, such as 250ms, 30s, 5m or 1h30m, ISO 8601, such as"
    f" PT5M or P1DT2H, or {PLAIN_MILLISECONDS}"
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The same without a zone, whose text need not be cut off again.
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001
_MILLISECOND: Final = timedelta(milliseconds=1)
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}")
# `fromisoformat` alone takes more than this, such as a zero byte amid the time of day.
_SHOWN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
)
_RFC3339: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(\.[0-9]{1,30})?"
    r"(Z|z|[+-][0-9]{2}:[0-9]{2})?"
)
_NUMBER: Final = r"([0-9]{1,19}(?:\.[0-9]{1,19})?)"
_SHORT: Final = re.compile(
    "".join(f"(?:{_NUMBER}{unit})?" for unit in ("w", "d", "h", "m", "s", "ms"))
)
_ISO: Final = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_UNIT_MS: Final = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000, 1)
_CALENDAR: Final = re.compile(r"P[0-9.]+[YM].*|[0-9.]+(?:y|mo|years?|months?)\b.*", re.IGNORECASE)


def parse_instant(text: str) -> int:
    """Epoch milliseconds of an instant; ValueError if `text` is not an instant.

        parse_instant("2026-12-01T10:00:00.250+01:00")     1796115600250
        parse_instant("2026-12-01T09:00:00.0001Z")         1796115600001, rounded up
        parse_instant("1796115600000")                     1796115600000

    Whether belfry takes such an instant is another question: see `instant_bounds.instant_problem`.
    """
    if _SHOWN.fullmatch(text):
        # As `format_instant` writes it, at a third of the cost: files hold a million of them.
        try:
            return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND
        except ValueError:
            pass  # What is wrong is told below.
    given = text.strip()
    if _DIGITS.fullmatch(given):
        return int(given)
    match = _RFC3339.fullmatch(given) if len(given) <= MAX_TEXT else None
    if match is None:
        raise ValueError(f"{text[:MAX_TEXT]!r} is no instant: give {INSTANT_EXAMPLES}.")
    date, clock, fraction, offset = match.groups()
    if offset is None:
        raise ValueError(
            f"{text!r} has no offset from UTC, so it is another instant on every machine: append Z"
            f" for UTC, as in {given}Z, or an offset, as in {given}+01:00."
        )
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=_zone(offset))
    except ValueError as error:
        raise ValueError(f"{text!r} is no instant: {error}. Give {INSTANT_EXAMPLES}.") from None
    return (whole - _EPOCH) // _MILLISECOND + _milliseconds(fraction or ".")


def _milliseconds(fraction: str) -> int:
    """Milliseconds of a fraction of a second, such as ``.25``; a part of one counts as one."""
    digits = fraction[1:]
    return int(digits[:3].ljust(3, "0")) + bool(digits[3:].strip("0"))


def _zone(offset: str) -> timezone:
    if offset in ("Z", "z"):
        return UTC
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(f"offset {offset} is not between -23:59 and +23:59")
    size = timedelta(hours=hours, minutes=minutes)
    return timezone(-size if offset[0] == "-" else size)


def parse_duration(text: str) -> int:
    """Milliseconds of a duration, 0 or more; ValueError if `text` is not a duration.

        parse_duration("1h30m")      5400000
        parse_duration("PT5M")       300000
        parse_duration("0.0001s")    1, rounded up
        parse_duration("1mo")        ValueError: months and years have no fixed length

    Texts of more than 64 characters are not read.
    """
    given = text.strip()
    if _DIGITS.fullmatch(given) and given[0] != "-":
        return int(given)
    match = _match_duration(given)
    if match is None:
        raise ValueError(
            f"{text[:MAX_TEXT]!r} is no duration: {_duration_fault(given)}give {DURATION_EXAMPLES}."
        )
    numbers = (Fraction(number or 0) for number in match.groups())
    return ceil(sum(n * unit for n, unit in zip(numbers, _UNIT_MS, strict=False)))


def _match_duration(given: str) -> re.Match[str] | None:
    if not given or len(given) > MAX_TEXT:
        return None
    match = _SHORT.fullmatch(given) or _ISO.fullmatch(given.upper())
    return match if match is not None and any(match.groups()) else None


def _duration_fault(given: str) -> str:
    if given.startswith("-"):
        return "it is negative; "
    if _CALENDAR.fullmatch(given):
        return "months and years have no fixed length; "
    return ""


def format_instant(ms: int) -> str:
    """RFC 3339 in UTC with milliseconds, such as ``2026-12-01T09:00:00.000Z``.

    Beyond the years 1 to 9999, which RFC 3339 cannot write, the bare number; `parse_instant` reads
    both back.
    """
    try:
        instant = _NAIVE_EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return str(ms)
    return instant.isoformat(timespec="milliseconds") + "Z"


def format_duration(ms: int) -> str:
    """Shortest exact text of a duration in whole units: ``90_000`` gives ``1m30s``.

    Weeks are not used, for ``10d`` reads better than ``1w3d``.  `parse_duration` reads it back.
    """
    parts: list[str] = []
    for unit_ms, unit in zip(_UNIT_MS[1:], ("d", "h", "m", "s", "ms"), strict=True):
        count, ms = divmod(ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
