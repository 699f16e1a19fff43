"""Cron expressions that cannot be read: where, why, what is allowed, what was meant."""

from __future__ import annotations

from datetime import date

import pytest

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.cron_spelling import normalized, seed_of
from belfry.schedules.triggers.cron_text import CronMistake, interval_of, read_cron
from belfry.schedules.triggers.cron_words import words_of
from belfry.schedules.triggers.expression import expression


@pytest.mark.parametrize(
    ("text", "character", "says", "hint"),
    [
        ("0 25 * * *", 3, "'25' is no hour: 0-23", ""),
        ("0 9 * * MONDAY-FRI", 9, "no day-of-week: 0-7 or SUN-SAT", "; did you mean MON-FRI?"),
        ("0 9 * * 1,THUR", 11, "'THUR' is no day-of-week", "; did you mean THU?"),
        ("0 9 * FEBUARY *", 7, "no month: 1-12 or JAN-DEC", "; did you mean FEB?"),
        ("0 9 * * FRI-MON", 9, "'FRI-MON'", "; a range goes upwards, so write FRI-SAT,SUN-MON"),
        ("5-1 * * * *", 1, "'5-1' is no minute", "; a range goes upwards, so write 5-59,0-1"),
        ("0 0 ? * *", 5, "'?' is no day-of-month", "; write * for any"),
        ("0 0 * * L", 9, "'L' is no day-of-week", "; did you mean 6L, the last Saturday?"),
        ("0 0 32W * *", 5, "15W for the day from Monday to Friday that is nearest", ""),
        ("0 0 H(5-40) * *", 5, "no day-of-month", "such as H(1-28) or H/2"),
        ("0 9 1,,2 * *", 7, "a day-of-month is missing", ""),
        ("0 0 0 1 1 * 27", 13, "'27' is no year: 1970-2199", ""),
        ("0 0 31W 4,6 *", 5, "no month that it names has a day 31W", ""),
        ("0 0 L-29 2 *", 5, "no month that it names has a day L-29", ""),
        ("* * * *", 8, "it has 4 fields; give five fields", "@every 90s"),
        ("* * * * * * * *", 15, "it has 8 fields", ""),
        ("@dayly", 1, "'@dayly' is no alias: @yearly,", "; did you mean @daily?"),
        ("@evry 90s or more", 1, "are, and @every with a duration", "; did you mean @every?"),
        ("0 9 * * 5-MON-2", 9, "'5-MON-2' is no day-of-week", "MON#2 for the second Monday"),
        ("0 9 * JUNI-JULI *", 7, "no month: 1-12", "; did you mean JUN-JUL?"),
        ("0 9 * SEPTEMBRES *", 7, "no month: 1-12", "; did you mean SEP?"),
        ("0 9 * AUGUSTUS-XII *", 7, "no month: 1-12 or JAN-DEC", ""),
    ],
)
def test_mistakes(text: str, character: int, says: str, hint: str) -> None:
    with pytest.raises(CronMistake) as caught:
        read_cron(text)
    assert caught.value.position + 1 == character
    assert says in str(caught.value)
    assert str(caught.value).endswith(hint)
    assert "did you mean" in hint or "did you mean" not in str(caught.value)


@pytest.mark.parametrize("text", ["@every", "@every 90", "@every x", "@EVERY 0s", "@every 101000d"])
def test_intervals_that_are_none(text: str) -> None:
    with pytest.raises(CronMistake, match="give a duration of 1 ms to 100 years with its unit"):
        interval_of(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 9 15W * *", "At 09:00, on the weekday nearest the 15th of the month"),
        ("0 9 L-3 * *", "At 09:00, on the 4th to last day of the month"),
        ("0 9 L-3W * *", "At 09:00, on the weekday nearest the 4th to last day of the month"),
        ("0 9 1,L 5 *", "At 09:00, on the 1st and the last day of the month, only in May"),
        ("0 9 * * MON#2,5L", "At 09:00, on the last Friday and the 2nd Monday of the month"),
        ("0 9 L * FRI", "At 09:00, on the last day of the month, or on every Friday"),
        ("0 0 9 L * * 2040-2050", "At 09:00, on the last day of the month, 2040 through 2050"),
        ("0 9 * * WED", "At 09:00, only on Wednesday"),
        ("0 0 9 * * MON-FRI 2027", "At 09:00, Monday through Friday, only in 2027"),
    ],
)  # fmt: skip
def test_words(text: str, words: str) -> None:
    assert words_of(normalized(text)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*/15 * * * *", "Every 15 minutes"),
        ("*/40 * * * *", "At 0 and 40 minutes past the hour"),
        ("*/90 * * * *", "Every hour"),
        ("30-59/40 * * * *", "At 30 minutes past the hour"),
        ("0 */5 * * *", "At 00:00, 05:00, 10:00, 15:00 and 20:00"),
        ("0 9-17/3 * * *", "Every 3 hours, between 09:00 and 17:59"),
        ("0 9 */10 * *", "At 09:00, on the 1st, the 11th, the 21st and the 31st of the month"),
        ("0 9 */2 * *", "At 09:00, on every 2nd day from the 1st to the 31st of the month"),
        ("0 9 */4 * *",
         ("At 09:00, on the 1st, the 5th, the 9th, the 13th, the 17th, the 21st, the 25th and the"
          " 29th of the month")),
        ("0 9 * */3 *", "At 09:00, every 3 months"),
        ("0 9 * */5 *", "At 09:00, only in January, June, and November"),
        ("0 9 * * 2/5", "At 09:00, on every Sunday and every Tuesday"),
        ("0 9 * * MON,TUE-THU/2", "At 09:00, on every Monday, every Tuesday and every Thursday"),
        ("0 9,* L *,5 *", "Every hour, on the last day of the month"),
        ("0 0 0 1 1 * 2030/3",
         "At 00:00, on day 1 of the month, only in January, every 3 years, 2030 through 2199"),
    ],
)  # fmt: skip
def test_a_step_that_does_not_go_round_evenly_is_told_by_its_numbers(text: str, words: str) -> None:
    assert words_of(normalized(text)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 9 13 * FRI", "At 09:00, on the 13th of the month, or on every Friday"),
        ("0 9 3 * 1-2", "At 09:00, on the 3rd of the month, or on every Monday and every Tuesday"),
        ("0 9 1-31 * FRI", "At 09:00"),
        ("0 9 13 * 0-6", "At 09:00"),
        ("0 9 */15 * MON",
         "At 09:00, on the 1st, the 16th and the 31st of the month, only if it is a Monday"),
        ("0 9 *,5 * MON", "At 09:00, on every Monday"),
        ("0 9 1 * */3",
         "At 09:00, on the 1st of the month, only if it is a Sunday, a Wednesday or a Saturday"),
    ],
)  # fmt: skip
def test_both_sorts_of_days_are_alternatives_or_conditions(text: str, words: str) -> None:
    assert words_of(normalized(text)) == words


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0 9 * * FIR", "FRI"),
        ("0 9 * JNU *", "JUN"),
        ("0 9 * * MONDAY-FRIDAY", "MON-FRI"),
        ("0 9 * SEPTEMBER *", "SEP"),
        ("0 9 * * XYZ", None),
    ],
)
def test_a_name_that_is_nearly_one_is_guessed(text: str, meant: str | None) -> None:
    with pytest.raises(CronMistake) as told:
        trigger_by(Rule("CRON", text))
    assert str(told.value).endswith("MON#2 for the second Monday" if meant is None else "?")
    assert meant is None or f"; did you mean {meant}?" in str(told.value)


def test_an_expression_has_two_hundred_characters_at_most() -> None:
    whole = "0 9 * * MON" + " " * 189
    assert read_cron(whole) == read_cron("0 9 * * MON")
    with pytest.raises(CronMistake, match="it has 201 characters; at most 200 are read"):
        read_cron(whole + " ")


@pytest.mark.parametrize(
    ("years", "expected"),
    [
        ("2030", {2030}),
        ("2199", {2199}),
        ("1970", {1970}),
        ("2030-2033", {2030, 2031, 2032, 2033}),
        ("2030-2035/2", {2030, 2032, 2034}),
        ("2190/4", {2190, 2194, 2198}),
        ("2191/4", {2191, 2195, 2199}),
        ("*/100", {1970, 2070, 2170}),
        ("2030,2040-2041", {2030, 2040, 2041}),
    ],
)
def test_years_are_single_or_in_ranges_with_a_step(years: str, expected: set[int]) -> None:
    assert read_cron(f"0 0 9 1 1 * {years}").years == expected


@pytest.mark.parametrize("years", ["1969", "2200", "2030-2029", "2030-", "x", "2030/x"])
def test_years_that_cannot_be_read_are_refused(years: str) -> None:
    with pytest.raises(CronMistake, match="is no year: 1970-2199"):
        read_cron(f"0 0 9 1 1 * {years}")


@pytest.mark.parametrize(
    ("text", "day", "first", "last"),
    [
        ("15,45 9,17 * * *", 0, 9 * 3_600 + 900, 17 * 3_600 + 2_700),
        ("30 10 20 6 * *", 3, 331_830, 331_830),
        ("0,59 0,1 23 * * *", 1, 86_400 + 82_800, 86_400 + 82_800 + 119),
    ],
)
def test_a_day_begins_and_ends_with_its_first_and_last_time(
    text: str, day: int, first: int, last: int
) -> None:
    assert expression(text).ends_of_day(day) == (first, last)


@pytest.mark.parametrize(
    ("day", "month", "expected"),
    [
        # The 1st, a Saturday, moves to Monday the 3rd, for it stays within its month.
        ("1W", "2026-08", 3),
        # The 2nd, a Saturday, moves to the 1st.
        ("2W", "2026-05", 1),
        ("31W", "2026-05", 29),
        ("30W", "2026-05", 29),
        ("30W", "2026-08", 31),
        ("15W", "2026-08", 14),
        ("15W", "2026-11", 16),
        ("15W", "2026-12", 15),
    ],
)
def test_the_nearest_weekday_of_the_month(day: str, month: str, expected: int) -> None:
    first = date.fromisoformat(f"{month}-01").toordinal() - date(1970, 1, 1).toordinal()
    found = expression(f"0 0 {day} * *")
    assert [each + 1 for each in range(31) if found.on_day(first + each)][:1] == [expected]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("H H H H *", "57 10 5 1 *"),
        ("H(0-1) H(3-3) * * *", "1 3 * * *"),
        ("H/15 * * * *", "12-59/15 * * * *"),
        ("H(5-9)/5 * * * *", "7-9/5 * * * *"),
        ("H(10-12)/3 * * * *", "10-12/3 * * * *"),
        # A step that goes beyond the range has one number.
        ("H(58-59)/2 * * * *", "59 * * * *"),
        # What cannot be read stays, and is told.
        ("H(10-12)/4 * * * *", "H(10-12)/4 * * * *"),
        ("H(10-12)/0 * * * *", "H(10-12)/0 * * * *"),
        ("H(12-10) * * * *", "H(12-10) * * * *"),
        ("H(0-60) H * * *", "H(0-60) 10 * * *"),
        ("HOUR H * * *", "HOUR 10 * * *"),
        ("H/1 * * * *", "0-59/1 * * * *"),
        # No year is drawn.
        ("0 0 0 H 1 * H", "0 0 0 5 1 * H"),
        ("H H", "H H"),
    ],
)
def test_frozen_numbers_of_a_hash(text: str, numbers: str) -> None:
    """Written once and never changed: a schedule keeps its minute over releases."""
    assert normalized(text, seed_of("demo", "a")) == numbers


def test_an_instant_at_the_acceptance_is_over_also_where_the_start_is_there() -> None:
    nine, day = 1_796_115_600_000, 86_400_000
    trigger = trigger_by(Rule("CRON", "0 9 * * *", start_at=nine))
    assert trigger.first_ms(nine) == nine + day
    assert trigger.first_ms(nine - 1) == nine


def test_an_expression_whose_years_are_over_has_no_next_instant() -> None:
    trigger = trigger_by(Rule("CRON", "0 0 9 1 1 * 2020"))
    assert trigger.first_ms(1_796_115_600_000) is None
