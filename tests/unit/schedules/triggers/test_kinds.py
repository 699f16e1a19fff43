"""What each kind says of a request: why it is refused, what it means, what to know before."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEARS_100_MS
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rejections import Rejection
from belfry.schedules.rule import (
    Rule,
    awaits,
    encode_rule,
    leaves_out,
    rule_of,
    targets_in,
    without_targets,
)
from belfry.schedules.targets import decode_targets, record_of
from belfry.schedules.triggers.acknowledged import FAR_MS, Depending, dependence_problem
from belfry.schedules.triggers.cron import plain_cron
from belfry.schedules.triggers.kind import OneShot, Recurring
from belfry.schedules.triggers.registry import KINDS

NOW = 1_800_000_000_000  # 2027-01-15T08:00:00Z
MOST = YEARS_100_MS
EXAMPLES = 'such as "FREQ=MONTHLY;BYDAY=-1FR".'


def asked(kind: str, **fields: Any) -> Any:
    return {**EMPTY, "tenant": "demo", "schedule_id": "a", "kind": kind, **fields}


def problem(kind: str, **fields: Any) -> Rejection | None:
    return KINDS[kind].problem(asked(kind, **fields), NOW)


def warned(kind: str, **fields: Any) -> list[tuple[str, str]]:
    request = asked(kind, **fields)
    found = preview(request, NOW, 1)
    assert isinstance(found, Preview)
    return [(each.code, each.text) for each in found.warnings]


def words(kind: str, **fields: Any) -> str:
    return KINDS[kind].words(asked(kind, **fields))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("AT", {"at": SECONDS_LIMIT}),
        ("AT", {"at": NOW + MOST}),
        ("AFTER", {"delay_ms": 0}),
        ("AFTER", {"delay_ms": MOST}),
        ("EVERY", {"interval_ms": 1}),
        ("EVERY", {"interval_ms": MOST}),
        ("AFTER_ACK", {"after_ack": "b"}),
        ("AFTER_ACK", {"after_ack": "é" * 127 + "b", "ack_delay_ms": 0, "latest_at": NOW}),
        ("AFTER_ACK", {"after_ack": "b", "ack_delay_ms": MOST, "group": "b"}),
        ("AFTER_GROUP", {"after_group": "a", "latest_at": NOW + MOST}),
    ],
)
def test_the_bounds_are_allowed(kind: str, fields: dict[str, Any]) -> None:
    assert problem(kind, **fields) is None


@pytest.mark.parametrize(
    ("kind", "fields", "code", "reason"),
    [
        ("AT", {}, "no_instant", "Kind AT needs the field `at` (epoch milliseconds)."),
        ("AFTER", {}, "no_instant", "Kind AFTER needs the field `delay_ms` (milliseconds)."),
        ("AFTER", {"delay_ms": -1}, "bad_delay",
         f"delay_ms -1 is not allowed: 0 to {MOST} (100 years)."),
        ("AFTER", {"delay_ms": MOST + 1}, "bad_delay",
         f"delay_ms {MOST + 1} is not allowed: 0 to {MOST} (100 years)."),
        ("EVERY", {}, "no_instant", "Kind EVERY needs the field `interval_ms` (milliseconds)."),
        ("EVERY", {"interval_ms": 0}, "bad_interval",
         f"interval_ms 0 is not allowed: 1 to {MOST} (100 years)."),
        ("EVERY", {"interval_ms": MOST + 1}, "bad_interval",
         f"interval_ms {MOST + 1} is not allowed: 1 to {MOST} (100 years)."),
        ("AFTER_ACK", {}, "no_instant",
         "Kind AFTER_ACK needs the field `after_ack`: whom it waits for."),
        ("AFTER_GROUP", {}, "no_instant",
         "Kind AFTER_GROUP needs the field `after_group`: whom it waits for."),
        ("AFTER_ACK", {"after_ack": ""}, "bad_after_ack",
         "after_ack '' is not 1-255 bytes of UTF-8."),
        ("AFTER_GROUP", {"after_group": "é" * 128}, "bad_after_ack",
         f"after_group '{'é' * 60}' is not 1-255 bytes of UTF-8."),
        ("AFTER_ACK", {"after_ack": "a"}, "bad_after_ack",
         "after_ack 'a' is its own: it would wait for itself."),
        ("AFTER_GROUP", {"after_group": "g", "group": "g"}, "bad_after_ack",
         "after_group 'g' is its own: it would wait for itself."),
        ("AFTER_ACK", {"after_ack": "b", "ack_delay_ms": -1}, "bad_after_ack",
         f"ack_delay_ms -1 is not allowed: 0 to {MOST} (100 years)."),
        ("AFTER_ACK", {"after_ack": "b", "ack_delay_ms": MOST + 1}, "bad_after_ack",
         f"ack_delay_ms {MOST + 1} is not allowed: 0 to {MOST} (100 years)."),
        ("AFTER_ACK", {"after_ack": "b", "latest_at": 7}, "instant_in_seconds",
         "latest_at 7 is before 2001: instants are epoch milliseconds (13 digits today)."),
        ("AFTER_ACK", {"after_ack": "b", "latest_at": 1_790_000_000}, "instant_in_seconds",
         ("latest_at 1790000000 is before 2001: instants are epoch milliseconds (13 digits today);"
         " if it counts seconds, send 1790000000000.")),
        ("AFTER_ACK", {"after_ack": "b", "latest_at": NOW + MOST + 1}, "instant_too_far",
         (f"latest_at {NOW + MOST + 1} is more than 100 years ahead: instants are epoch"
         " milliseconds; if it counts micro- or nanoseconds, divide it.")),
        ("RRULE", {}, "no_instant",
         ("Kind RRULE needs the field `rrule`: FREQ and perhaps INTERVAL, BY-parts and one of"
         f" COUNT and UNTIL, {EXAMPLES}")),
        ("RRULE", {"rrule": "FREQ=DAILY"}, "no_instant",
         ("Kind RRULE needs the field `start_at`, or a line DTSTART in `rrule`: the rule begins"
         " then, and takes from it what it leaves out.")),
        ("RRULE", {"rrule": "FREQ=DALY", "start_at": NOW}, "bad_rule",
         ("rrule 'FREQ=DALY' cannot be read: FREQ=DALY is not known: YEARLY, MONTHLY, WEEKLY,"
         " DAILY, HOURLY, MINUTELY, SECONDLY; did you mean DAILY?")),
        ("RRULE", {"rrule": "FREQ=DAILY;COUNT=0", "start_at": NOW}, "bad_rule",
         "rrule 'FREQ=DAILY;COUNT=0' cannot be read: COUNT=0 is not allowed: 1 to 2147483647."),
        ("CRON", {"cron": "0 25 * * *"}, "bad_cron",
         "cron '0 25 * * *' cannot be read at character 3: '25' is no hour: 0-23."),
        ("CRON", {"cron": "@dayly"}, "bad_cron",
         ("cron '@dayly' cannot be read at character 1: '@dayly' is no alias: @yearly, @annually,"
         " @monthly, @weekly, @daily, @midnight, @hourly are, and @every with a duration; did you"
         " mean @daily?")),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_with_what_is_allowed(
    kind: str, fields: dict[str, Any], code: str, reason: str
) -> None:
    assert problem(kind, **fields) == Rejection(code, reason)


def test_a_preview_without_names_waits_for_whom_it_likes() -> None:
    request = asked("AFTER_ACK", after_ack="a")
    del request["schedule_id"]
    assert KINDS["AFTER_ACK"].problem(request, NOW) is None


@pytest.mark.parametrize("name", ["ack_delay_ms", "latest_at"])
def test_what_belongs_to_a_wait_stands_beside_no_other_kind(name: str) -> None:
    value = {"ack_delay_ms": 0, "latest_at": NOW}[name]
    assert dependence_problem(asked("AFTER_GROUP", **{name: value})) is None
    assert dependence_problem(asked("AT")) is None
    assert dependence_problem(asked("AT", **{name: value})) == Rejection(
        "bad_after_ack",
        f"{name} is set, and kind AT waits for no acknowledgement: leave it empty, or use kind"
        " AFTER_ACK or AFTER_GROUP.",
    )


def test_when_a_one_shot_is_due() -> None:
    def first(kind: str, **fields: Any) -> int:
        found = KINDS[kind]
        assert isinstance(found, OneShot)
        return found.first_ms(asked(kind, **fields), NOW)

    assert first("AT", at=7) == 7
    assert first("AFTER", delay_ms=7) == NOW + 7
    assert first("AFTER_ACK", after_ack="b") == FAR_MS
    assert first("AFTER_GROUP", after_group="b", latest_at=NOW + 9) == NOW + 9


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("AFTER_ACK", {"after_ack": "b"}, "Once, after the acknowledgement of b"),
        ("AFTER_ACK", {"after_ack": "b", "ack_delay_ms": 90_000, "latest_at": NOW},
         ("Once, after the acknowledgement of b, 1m30s later, at the latest at"
         " 2027-01-15T08:00:00.000Z")),
        ("AFTER_GROUP", {"after_group": "g"}, "Once, when all of group g are acknowledged"),
        ("AFTER_GROUP", {"after_group": "g", "ack_delay_ms": 5_000},
         "Once, when all of group g are acknowledged, 5s later"),
        ("CRON", {"cron": "@every 90s"}, "Every 1m30s"),
        ("CRON", {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}, "At 09:00, Asia/Tokyo"),
        ("CRON", {"cron": "0 9 * * MON | @every 90m | 0 12 * * *", "start_at": NOW},
         ("At 09:00, only on Monday; and at 12:00; and every 1h30m from 2027-01-15T08:00:00.000Z"
         " on, UTC")),
        ("RRULE", {"rrule": "FREQ=DAILY", "timezone": "Asia/Tokyo"}, "Every day, Asia/Tokyo"),
        ("RRULE", {"rrule": "DTSTART;TZID=Europe/Paris:20270101T000000 FREQ=DAILY"},
         "Every day, Europe/Paris"),
    ],
)  # fmt: skip
def test_what_it_means_in_words(kind: str, fields: dict[str, Any], said: str) -> None:
    assert words(kind, **fields) == said


WAITS = "Its instant follows from an acknowledgement"
HASHED = (
    "H stands for a number that follows from the names of tenant and schedule;"
    " here it is 57 * * * *."
)
EITHER = (
    "Both the day of month and the day of week are given: a day that is one of the two is enough."
    " A field that begins with * makes it both."
)


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        ("AT", {"at": NOW}, ("in_the_past", "The instant is in the past: it fires at once.")),
        ("AT", {"at": NOW + 1}, None),
        ("EVERY", {"interval_ms": 999},
         ("very_frequent", "It is due more often than once a second.")),
        ("CRON", {"cron": "@every 999ms"},
         ("very_frequent", "It is due more often than once a second.")),
        ("AFTER_ACK", {"after_ack": "b"}, ("not_known_yet", f"{WAITS}.")),
        ("AFTER_GROUP", {"after_group": "b", "latest_at": NOW},
         ("not_known_yet", f"{WAITS}; at the latest it is 2027-01-15T08:00:00.000Z.")),
        ("CRON", {"cron": "H * * * *"}, ("hashed", HASHED)),
        ("CRON", {"cron": "0 0 13 * FRI"}, ("either_day", EITHER)),
        ("RRULE", {"rrule": "FREQ=WEEKLY;BYDAY=MO", "start_at": NOW},
         ("start_is_not_due", ("The start is no time of the rule: the first occurrence is a later"
          " one, and COUNT counts from there."))),
    ],
)  # fmt: skip
def test_what_to_know_before(
    kind: str, fields: dict[str, Any], told: tuple[str, str] | None
) -> None:
    assert warned(kind, **fields) == ([told] if told else [])


def test_a_number_for_h_in_a_preview_without_names_is_that_of_no_names() -> None:
    request = asked("CRON", cron="H * * * * | H 1 * * *")
    named = plain_cron(request)
    del request["tenant"], request["schedule_id"]
    assert named == "57 * * * * | 57 1 * * *"
    unnamed = plain_cron(request)
    assert unnamed == plain_cron(request | {"tenant": "", "schedule_id": ""})
    assert unnamed != named


def test_a_rule_has_all_that_a_request_says_of_it() -> None:
    said = {
        "cron": "0 9 * * *", "timezone": "Asia/Tokyo", "start_at": NOW, "end_at": NOW + 1,
        "max_fires": 3, "misfire": "SKIP", "max_lateness_ms": 4, "overlap": "SKIP",
        "ack_timeout_ms": 5, "except_cron": "* 0-5 * * *", "calendar": "de",
        "on_holiday": "SKIP", "concurrency": 6, "priority": 7,
    }  # fmt: skip
    found = rule_of(asked("CRON", **said), b"\x60")
    rest = {name: value for name, value in said.items() if name != "cron"}
    expected: dict[str, Any] = {"when": said["cron"], "packed_days": b"\x60", **rest}
    assert found == Rule("CRON", **expected)
    assert rule_of(asked("CRON", **said)).calendar is None
    after: dict[str, Any] = {"ack_delay_ms": 8, "latest_at": NOW}
    assert rule_of(asked("AFTER_ACK", after_ack="b", **after)) == Rule(
        "AFTER_ACK", awaited="b", **after
    )
    assert rule_of(asked("AFTER", delay_ms=7, max_wait_ms=9, serial=True)) == Rule(
        "AFTER", max_wait_ms=9, serial=True
    )
    targets = [record_of("https://hooks.example.com/x")]
    kept = rule_of(asked("AT", at=NOW, http_targets=targets)).targets or b""
    assert [each.url for each in decode_targets(kept)] == ["https://hooks.example.com/x"]


def test_who_waits_for_an_acknowledgement() -> None:
    assert awaits(encode_rule(Rule("AT", serial=True)))
    assert awaits(encode_rule(Rule("AT", concurrency=2)))
    for overlap in ("SKIP", "QUEUE_ONE", "QUEUE_ALL", "CANCEL_OTHER", "TERMINATE_OTHER"):
        assert awaits(encode_rule(Rule("EVERY", 7, overlap=overlap)))
    for rule in (Rule("AT"), Rule("EVERY", 7), Rule("EVERY", 7, overlap="ALLOW")):
        assert not awaits(encode_rule(rule))


def test_what_a_rules_bytes_say_without_being_read() -> None:
    assert leaves_out(encode_rule(Rule("EVERY", 7, except_cron="* 0-5 * * *")))
    assert leaves_out(encode_rule(Rule("EVERY", 7, calendar="de", packed_days=b"\x60")))
    assert not leaves_out(encode_rule(Rule("EVERY", 7, "Asia/Tokyo", priority=3)))
    assert not leaves_out(b"")
    with_targets = encode_rule(Rule("EVERY", 7, targets=b'[{"url":"x"}]'))
    assert targets_in(with_targets) == b'[{"url":"x"}]'
    assert without_targets(with_targets) == encode_rule(Rule("EVERY", 7))


def test_kinds_that_depend_and_that_recur_are_told_apart() -> None:
    for kind in KINDS.values():
        assert isinstance(kind, Depending) == kind.depends
        assert isinstance(kind, Recurring) == kind.recurs
    assert rule_of(asked("AFTER_ACK", after_ack="b")).awaited == "b"
