"""Rules at rest: what they say, and the bytes that every release has to read."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.days_off import packed_days
from belfry.schedules.fields import EMPTY
from belfry.schedules.request import Request
from belfry.schedules.rule import (
    Rule,
    decode_rule,
    encode_rule,
    has_calendar,
    leaves_out,
    rule_of,
)

FULL = Rule(
    "CRON",
    when="0 9 * * MON",
    timezone="Europe/Paris",
    start_at=1_800_000_000_000,
    end_at=1_900_000_000_000,
    max_fires=3,
    misfire="SKIP",
    max_lateness_ms=60_000,
    overlap="QUEUE_ONE",
)
# Written once and never changed: a store of any release holds such bytes.
FROZEN = {
    "01 02 00 01 00 00 00 00 00 00 75 30": Rule("EVERY", when=30_000),
    "01 03 20 00 06 40 64 61 69 6c 79": Rule("CRON", when="@daily"),
    "01 03 20 40 00 91 b1 cc 03 20 03 81 09 48 20 2a 20 2a 20 2a 20 2a": Rule(
        "CRON", when="H * * * *", seed=41_009_361_406_919_553
    ),
    "01 00 01 10 00 00 00 00 00 00 00 00 03": Rule("AT", misfire="SKIP", max_lateness_ms=0),
    "01 03 33 1e 00 00 01 a3 18 5c 50 00 00 00 01 ba 60 d3 38 00 00 00 00 00 00 00 00 03"
    " 00 00 00 00 00 00 ea 60 03 03 0c 45 75 72 6f 70 65 2f 50 61 72 69 73"
    " 0b 30 20 39 20 2a 20 2a 20 4d 4f 4e": FULL,
    "01 02 18 01 00 00 00 00 00 0d bb a0 0b 2a 20 30 2d 35 20 2a 20 2a 20 2a 0a 41 73 69 61 2f 54"
    " 6f 6b 79 6f": Rule("EVERY", when=900_000, timezone="Asia/Tokyo", except_cron="* 0-5 * * *"),
    "01 01 00 80 00 01 00 00 00 00 00 0d bb a0": Rule("AFTER", max_wait_ms=900_000),
    "01 00 00 80 00 02 00 00 00 00 00 00 00 03": Rule("AT", concurrency=3),
    "01 01 81 90 00 01 00 00 00 00 00 00 00 00 03 00 00 00 00 00 0d bb a0 5b 7b 7d 5d 00 04": Rule(
        "AFTER", max_wait_ms=900_000, misfire="SKIP", max_lateness_ms=0, targets=b"[{}]"
    ),
    "01 03 20 80 00 10 06 40 64 61 69 6c 79 00 09 02 02 64 65 60 cc a2 01 07": Rule(
        "CRON",
        when="@daily",
        calendar="de",
        on_holiday="NEXT_BUSINESS_DAY",
        packed_days=packed_days([20_812, 20_819], [5, 6]),
    ),
}


def request(**fields: Any) -> Request:
    made: Any = {**EMPTY, "tenant": "demo", "schedule_id": "a", **fields}
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize("encoded", FROZEN)
def test_frozen_bytes(encoded: str) -> None:
    assert encode_rule(FROZEN[encoded]).hex(" ") == encoded
    assert decode_rule(bytes.fromhex(encoded)) == FROZEN[encoded]


@pytest.mark.parametrize("kind", ["AT", "AFTER"])
def test_a_plain_one_shot_has_no_rule(kind: str) -> None:
    assert encode_rule(Rule(kind)) == b""
    assert decode_rule(b"") == Rule("AT")


@pytest.mark.parametrize("damaged", ["02 02 00 01", "01 07 00 00", "01 02 00 80 80 00"])
def test_another_format_is_never_guessed(damaged: str) -> None:
    with pytest.raises(ValueError, match="format 1"):
        decode_rule(bytes.fromhex(damaged))


def test_a_rule_takes_what_belongs_to_its_kind() -> None:
    both: dict[str, Any] = {"cron": "@daily", "interval_ms": 5, "max_fires": 2, "misfire": "SKIP"}
    assert rule_of(request(kind="AT", at=1, **both)) == Rule("AT", misfire="SKIP")
    assert rule_of(request(kind="EVERY", **both)) == Rule(
        "EVERY", when=5, max_fires=2, misfire="SKIP"
    )
    night: dict[str, Any] = {"except_cron": "* 0-5 * * *", "timezone": "Asia/Tokyo"}
    assert rule_of(request(kind="EVERY", interval_ms=5, **night)) == Rule("EVERY", when=5, **night)
    assert rule_of(request(kind="AT", at=1, **night)) == Rule("AT")
    assert rule_of(request(kind="CRON", timezone="UTC", **both)) == Rule(
        "CRON", when="@daily", timezone="UTC", max_fires=2, misfire="SKIP"
    )


def test_lateness_defaults() -> None:
    assert Rule("AT").lateness_limit_ms is None
    assert Rule("AT", max_lateness_ms=5).lateness_limit_ms == 5
    assert Rule("EVERY", when=1).lateness_limit_ms == 60_000
    assert Rule("CRON", when="@daily", max_lateness_ms=0).lateness_limit_ms == 0


@pytest.mark.parametrize(
    ("rule", "left_out", "calendar"),
    [
        (Rule("AT"), False, False),
        # Its text lies where others have the second half of their bits.
        (Rule("CRON", when="0 9 * * *"), False, False),
        (Rule("CRON", when="0 9 * * *", except_cron="* 0-5 * * *"), True, False),
        (Rule("AFTER", max_wait_ms=900_000), False, False),
        (FROZEN["01 03 20 80 00 10 06 40 64 61 69 6c 79 00 09 02 02 64 65 60 cc a2 01 07"],
         True, True),
    ],
)  # fmt: skip
def test_whether_a_rule_leaves_instants_out_is_seen_in_its_bits(
    rule: Rule, left_out: bool, calendar: bool
) -> None:
    encoded = encode_rule(rule)
    assert (leaves_out(encoded), has_calendar(encoded)) == (left_out, calendar)


@pytest.mark.parametrize(
    ("size", "bits", "prefix"),
    [(1, "2000", "01"), (255, "2000", "ff"), (256, "4000", "01 00"), (65_535, "4000", "ff ff")],
)
def test_a_text_of_255_bytes_is_the_longest_with_a_size_of_one(
    size: int, bits: str, prefix: str
) -> None:
    rule = Rule("RRULE", when="x" * size)
    encoded = encode_rule(rule)
    assert encoded[2:4].hex() == bits
    assert encoded[4:-size].hex(" ") == prefix
    assert decode_rule(encoded) == rule


def test_numbers_at_rest_have_a_sign() -> None:
    rule = Rule("EVERY", when=60_000, start_at=-5, end_at=(1 << 62) + 1)
    assert decode_rule(encode_rule(rule)) == rule


def test_what_lies_behind_the_days_of_a_calendar_is_none_of_them() -> None:
    rule = Rule(
        "CRON", when="@daily", calendar="de", on_holiday="NEXT_BUSINESS_DAY",
        packed_days=packed_days([20_812], [5, 6]), targets=b"[{}]",
    )  # fmt: skip
    assert decode_rule(encode_rule(rule)) == rule
