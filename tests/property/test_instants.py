"""Instants and durations survive being written and read; what cannot be read says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEARS_100_MS, instant_problem
from belfry.schedules.instants import (
    MAX_TEXT,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
OFFSETS = st.integers(-(23 * 60 + 59), 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
DATETIMES = st.datetimes(
    datetime(2, 1, 1),  # noqa: DTZ001  (the strategy adds the zone)
    datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=OFFSETS,
)


@given(st.integers(-(10**18), 10**18))
def test_an_instant_is_read_back_as_written(ms: int) -> None:
    assert parse_instant(format_instant(ms)) == ms


@given(st.integers(-(10**18), 10**18))
def test_digits_are_epoch_milliseconds(ms: int) -> None:
    assert parse_instant(f" {ms} ") == ms


@given(DATETIMES)
def test_an_instant_is_never_rounded_to_before_it(instant: datetime) -> None:
    rounded_ms = parse_instant(instant.isoformat(timespec="microseconds"))
    assert timedelta() <= rounded_ms * MILLISECOND - (instant - EPOCH) < MILLISECOND


@given(DATETIMES)
def test_letters_may_be_small_and_a_space_may_stand_for_t(instant: datetime) -> None:
    text = instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert (
        parse_instant(text.lower()) == parse_instant(text.replace("T", " ")) == parse_instant(text)
    )


@given(st.datetimes(), st.sampled_from(["seconds", "milliseconds", "microseconds"]))
def test_an_instant_without_offset_is_refused(local: datetime, precision: str) -> None:
    with pytest.raises(ValueError, match="no offset from UTC"):
        parse_instant(local.isoformat(timespec=precision))


@pytest.mark.parametrize("parse", [parse_instant, parse_duration])
@given(text=st.text())
def test_any_text_is_read_or_refused_with_a_sentence(
    parse: Callable[[str], int], text: str
) -> None:
    sentence = ""
    try:
        assert isinstance(parse(text), int)
    except ValueError as error:
        sentence = str(error)
    assert not sentence or (sentence.endswith(".") and repr(text[:MAX_TEXT]) in sentence)


@given(st.integers(0, 10**15))
def test_a_duration_is_read_back_as_written(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms
    assert parse_duration(str(ms)) == ms


@given(st.integers(0, 9999), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99_999))
def test_short_and_iso_durations_agree(days: int, hours: int, minutes: int, ms: int) -> None:
    expected = ((days * 24 + hours) * 60 + minutes) * 60_000 + ms
    seconds = f"{ms // 1000}.{ms % 1000:03}"
    assert parse_duration(f"{days}d{hours}h{minutes}m{seconds}s") == expected
    assert parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S") == expected
    assert parse_duration(f"p{days}dt{hours}h{minutes}m{seconds}s") == expected


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("1w", 604_800_000),
        ("0s", 0),
        ("0", 0),
        ("0.1ms", 1),
        ("PT5M", 300_000),
        ("P1DT2H", 93_600_000),
        ("P2W", 1_209_600_000),
        ("PT0.5S", 500),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", " ", "P", "PT", "P1DT", "h", "5 m", "30m1h", "1h1h", "5M", "-5m", "-1", "1.m", "5x"],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no duration: .*give .*1h30m"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["P1Y", "P1M", "2months", "1y"])
def test_calendar_units_are_refused_with_their_reason(text: str) -> None:
    with pytest.raises(ValueError, match="months and years have no fixed length"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00.000Z"),
        ("2026-12-01T10:00:00.250+01:00", "2026-12-01T09:00:00.250Z"),
        ("2026-12-01T09:00Z", "2026-12-01T09:00:00.000Z"),
        ("2026-12-01T09:00:00.0001Z", "2026-12-01T09:00:00.001Z"),
        ("2026-12-01T09:00:00-00:00", "2026-12-01T09:00:00.000Z"),
        ("1796115600000", "2026-12-01T09:00:00.000Z"),
    ],
)
def test_instants(text: str, written: str) -> None:
    assert format_instant(parse_instant(text)) == written


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2026-12-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "09:00Z",
     "2026-12-01T25:00:00Z", "2026-12-01T09:00:00+24:00", "2026-12-01T09:00:00+0100"],
)  # fmt: skip
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no instant: .*2026-12-01T09:00:00Z"):
        parse_instant(text)


@given(st.integers(-(10**18), 10**18), st.integers(SECONDS_LIMIT, 4 * 10**12))
def test_an_instant_is_allowed_from_2001_to_in_100_years(ms: int, now_ms: int) -> None:
    problem = instant_problem(ms, now_ms)
    code = None if problem is None else problem.code
    if ms < SECONDS_LIMIT:
        assert code == "instant_in_seconds"
    elif ms > now_ms + YEARS_100_MS:
        assert code == "instant_too_far"
    else:
        assert code is None
