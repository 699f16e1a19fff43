"""What follows from an answer: the end, or another attempt, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from belfry.delivery.answers import (
    Again,
    Answer,
    Delivered,
    End,
    Failed,
    answered,
    best,
    retry_after_ms,
    step_after,
)
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import (
    DeliveryState,
    UnknownDelivery,
    decode_state,
    encode_state,
)
from belfry.wire.fired import FiredEvent

T0 = 1_800_000_000_000
EVENT = FiredEvent("demo", "a", "f" * 32, 1, 0, T0, T0, T0)
ONE, TWO = HttpTarget("https://one.example.com/"), HttpTarget("https://two.example.com/")


def state(**fields: Any) -> DeliveryState:
    return DeliveryState(**{"targets": (ONE,), **fields})


@pytest.mark.parametrize(
    ("status", "end"),
    [
        *((each, End.DELIVERED) for each in (200, 201, 202, 204, 299)),
        *((each, End.AGAIN) for each in (408, 425, 429, 500, 502, 503, 504, 599)),
        *((each, End.FINAL) for each in (301, 302, 307, 308, 400, 401, 403, 404, 410, 413, 422)),
    ],
)
def test_a_status_says_what_follows(status: int, end: End) -> None:
    assert answered(status, None, "u", T0).end is end


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        ("120", 120_000),
        ("0", 0),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60_000),
        ("Fri, 15 Jan 2020 08:01:00 GMT", 0),
        ("999999999999", 86_400_000),
        ("-5", 0),
        ("soon", 0),
        ("１２", 0),
        ("", 0),
        (None, 0),
        ("Fri, 99 Jan 2027 99:99:99 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(given: str | None, ms: int) -> None:
    assert retry_after_ms(given, T0) == ms


def again(answer: Answer, now_ms: int = T0, **fields: Any) -> Again:
    step = step_after(state(**fields), EVENT, answer, now_ms)
    assert isinstance(step, Again)
    return step


NO = Answer(End.AGAIN, "u", "timeout", "no answer")


def test_the_wait_doubles_up_to_a_limit_plus_up_to_a_quarter() -> None:
    waits = [again(NO, attempt=n, initial_ms=100, max_ms=1_000).at_ms - T0 for n in range(1, 9)]
    for wait, least in zip(waits, (100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000), strict=True):
        assert least <= wait <= least * 1.25


def test_the_wait_of_an_attempt_is_the_same_everywhere_and_differs_between_fires() -> None:
    assert state().wait_ms("f") == state().wait_ms("f")
    assert len({state(initial_ms=10**6).wait_ms(str(number)) for number in range(50)}) > 40


def test_retry_after_is_honoured() -> None:
    later = answered(503, "300", "u", T0)
    assert again(later, initial_ms=10).at_ms == T0 + 300_000


def test_attempts_end() -> None:
    assert again(NO, attempt=2, attempts=3).state.attempt == 3
    step = step_after(state(attempt=3, attempts=3), EVENT, NO, T0)
    assert isinstance(step, Failed)
    assert step.answer.code == "timeout"
    assert step.answer.reason == "no answer; given up after 3 of 3 attempts"


def test_age_ends() -> None:
    step = step_after(state(age_ms=60_000), EVENT, NO, T0 + 59_500)
    assert isinstance(step, Failed)
    assert step.answer.reason == (
        "no answer; given up at attempt 1, since the next one would be more than 60000 ms after it"
        " fired"
    )


def test_what_was_postponed_was_no_attempt() -> None:
    wait = Answer(End.POSTPONED, "u", "host_silent", "silent", T0 + 7_000)
    step = again(wait, attempt=3, attempts=3)
    assert step.state.attempt == 3
    assert T0 + 7_000 <= step.at_ms < T0 + 8_000


def test_the_first_success_counts() -> None:
    final = Answer(End.FINAL, "a")
    done = Answer(End.DELIVERED, "b")
    assert best([final, done]) is done
    assert best([final, NO]) is NO
    assert best([final]) is final
    assert isinstance(step_after(state(), EVENT, done, T0), Delivered)
    assert isinstance(step_after(state(), EVENT, final, T0), Failed)


def test_turns_are_taken_by_occurrence_and_at_a_retry() -> None:
    both = state(targets=(ONE, TWO), strategy="ROUND_ROBIN")
    first = [both.order("a", occurrence)[0] for occurrence in range(4)]
    assert first[0] != first[1]
    assert first == first[:2] * 2
    assert both.next_attempt().order("a", 0) == both.order("a", 1)
    spread = {both.order(f"one-shot/{number}", 0) for number in range(20)}
    assert len(spread) == 2


def test_the_first_available_is_looked_for_in_the_order_given() -> None:
    assert state(targets=(ONE, TWO), strategy="FIRST_AVAILABLE").order("a", 5) == (ONE, TWO)


FULL = DeliveryState(
    (HttpTarget("https://h/", 5, 2, "s", (("a", "b"),), "ROUND_ROBIN"),),
    *("ROUND_ROBIN", 1, 3, 4, 5, 6, 7, ("h",), True),
)
# Written once and never changed: a topic holds such headers.
FROZEN = (
    b'{"v":1,"targets":[{"url":"https://h/","timeout_ms":5,"max_attempts":2,"secret_ref":"s",'
    b'"headers":[["a","b"]],"strategy":"ROUND_ROBIN"}],"strategy":"ROUND_ROBIN","number":1,'
    b'"attempt":3,"attempts":4,"initial_ms":5,"max_ms":6,"age_ms":7,"hosts":["h"],"tell":true}'
)


def test_frozen_bytes() -> None:
    assert encode_state(FULL) == FROZEN
    assert decode_state(FROZEN) == FULL
    frozen_acks = FROZEN.replace(b'"tell":true', b'"tell":true,"acks":true')
    assert encode_state(replace(FULL, acks=True)) == frozen_acks
    assert decode_state(frozen_acks) == replace(FULL, acks=True)


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"[]", b"3", b'{"v":2}', FROZEN.replace(b'"v":1', b'"v":2'),
                FROZEN.replace(b'"url"', b'"uri"'), b'{"v":1,"targets":[],"hosts":[]}',
                FROZEN.replace(b'"attempt":3', b'"attempt":0'),
                FROZEN.replace(b'"attempts":4', b'"attempts":"x"'),
                FROZEN.replace(b"https://h/", b"http://["),
                FROZEN.replace(b'["h"]', b'"h"')],
)  # fmt: skip
def test_another_format_is_never_guessed(damaged: bytes) -> None:
    with pytest.raises(UnknownDelivery):
        decode_state(damaged)
