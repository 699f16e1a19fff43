"""A record that is sent back with `belfry-retry`, as a request."""

from __future__ import annotations

from typing import Any, cast

import pytest

from belfry.client import Backoff, FiredRecord, retry_later
from belfry.client.asking import Asking
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.wire.headers import asked_by, speaks_protocol
from belfry.wire.record import REDRIVEN_FROM, Headers, SourceRecord
from belfry.wire.requests import RequestReader
from belfry.wire.retries import letter_headers

FIRE = b"0f" * 16
NAME = f"retry/{FIRE.decode()}"
RETRY = ("belfry-retry", b"first=5s factor=2 most=1h attempts=8")
# A record as belfry fires it.
FIRED: Headers = [
    ("content-type", b"application/json"),
    ("belfry-fire-id", FIRE),
    ("belfry-schedule-id", b"charge/1"),
    ("belfry-scheduled-at", b"2027-01-15T08:00:00.000Z"),
    ("belfry-occurrence", b"0"),
    ("belfry-schedule-tenant", b"shop"),
    ("belfry-schedule-version", b"1"),
    ("belfry-schedule-group", b"card"),
    ("belfry-schedule-type", b"charge"),
]


def record(*headers: tuple[str, bytes | None]) -> SourceRecord:
    return (7, 1_800_000_000_000, b"4711", b"card 4711", list(headers))


def request(*headers: tuple[str, bytes | None]) -> Request:
    found = RequestReader().read_whole(record(*headers))
    assert not isinstance(found, Rejection), found
    return found


def refusal(*headers: tuple[str, bytes | None]) -> Rejection:
    found = RequestReader().read_whole(record(*headers))
    assert isinstance(found, Rejection)
    return found


def kept(found: Request) -> list[tuple[str, bytes | None]]:
    return [(each["name"], each["value"]) for each in found["headers"]]


def test_a_fired_record_as_it_came_asks_for_nothing_and_with_one_header_more_comes_again() -> None:
    assert not speaks_protocol(FIRED)
    found = request(*FIRED, RETRY)
    names = found["tenant"], found["schedule_id"], found["request_id"]
    assert names == ("shop", NAME, NAME)
    assert (found["action"], found["kind"], found["delay_ms"]) == ("UPSERT", "AFTER", 5_000)
    assert (found["event_type"], found["group"]) == ("charge", "card")
    assert (found["key"], found["payload"]) == (b"4711", b"card 4711")
    assert kept(found) == [("content-type", b"application/json"), ("retry-attempt", b"1")]
    assert "retry" not in found


@pytest.mark.parametrize(("count", "delay_ms"), [(b"1", 10_000), (b"6", 320_000), (b"007", None)])
def test_each_try_is_counted_and_waits_longer(count: bytes, delay_ms: int | None) -> None:
    given = [*FIRED, ("retry-attempt", count), RETRY]
    if delay_ms is None:
        assert refusal(*given) == Rejection(
            "retries_exhausted",
            "The record failed 8 times, and belfry-retry allows 8: it is a dead letter now."
            " `belfry redrive rejected` has it tried anew.",
        )
        return
    found = request(*given)
    assert found["delay_ms"] == delay_ms
    assert kept(found)[-1] == ("retry-attempt", b"%d" % (int(count) + 1))


def test_the_later_of_two_counts_counts_and_one_is_left() -> None:
    found = request(("retry-attempt", b"5"), *FIRED, ("retry-attempt", b"1"), RETRY)
    assert [each for each in kept(found) if each[0] == "retry-attempt"] == [("retry-attempt", b"2")]


@pytest.mark.parametrize(
    "count", [b"", b"-1", b"two", b"1.0", b"\xff", b"1" * 10, "\u0661".encode()]
)
def test_what_is_no_count_is_refused(count: bytes) -> None:
    """Taken for none, it would have the record tried for ever."""
    found = refusal(*FIRED, RETRY, ("retry-attempt", count))
    assert (found.code, "Header retry-attempt is no count" in found.reason) == ("bad_header", True)


def test_a_record_of_another_topic_needs_names() -> None:
    found = request(("belfry-tenant", b"shop"), ("belfry-id", b"charges/0/17"), RETRY)
    assert (found["tenant"], found["schedule_id"], found["delay_ms"]) == (
        "shop",
        "charges/0/17",
        5_000,
    )
    # Many records may be put back under one id of a consumer's own: none of them is a repeat.
    assert found["request_id"] is None
    assert refusal(RETRY, ("belfry-id", b"x")).code == "no_tenant"
    assert refusal(RETRY, ("belfry-tenant", b"shop")).code == "bad_schedule_id"


def test_what_headers_say_wins_over_what_the_record_says_of_its_fire() -> None:
    own: Headers = [
        ("belfry-tenant", b"other"),
        ("belfry-id", b"mine"),
        ("belfry-request-id", b"r"),
        ("belfry-type", b"t"),
        ("belfry-group", b"g"),
    ]
    found = request(*own, *FIRED, RETRY)
    names = found["tenant"], found["schedule_id"], found["request_id"]
    assert (*names, found["event_type"], found["group"]) == ("other", "mine", "r", "t", "g")
    named: Any = asked_by(record(*own, *FIRED, RETRY))
    assert (named["tenant"], named["schedule_id"], named["request_id"]) == names


def test_the_topic_that_a_record_came_in_on_wins_over_everything() -> None:
    found = request(*FIRED, RETRY, ("belfry-origin-tenant", b"own"))
    assert found["tenant"] == "own"


def test_who_asked_is_known_though_the_record_is_refused() -> None:
    """So each dead letter has its verdict, and its tenant finds it."""
    for given in ([("retry-attempt", b"7")], [("belfry-group", b"\xff")]):
        refused = record(*FIRED, *given, RETRY)
        assert isinstance(RequestReader().read_whole(refused), Rejection)
        named: Any = asked_by(refused)
        assert (named["tenant"], named["schedule_id"], named["request_id"]) == ("shop", NAME, NAME)
    nobody: Any = asked_by(record(RETRY, ("belfry-tenant", None)))
    assert (nobody["tenant"], nobody["schedule_id"], nobody["request_id"]) == ("", "", None)


def test_a_dead_letter_that_is_sent_again_begins_anew() -> None:
    again = (REDRIVEN_FROM, b"belfry.rejected/3@41")
    found = request(*FIRED, ("retry-attempt", b"7"), RETRY, again)
    assert (found["delay_ms"], kept(found)[-1]) == (5_000, ("retry-attempt", b"1"))
    # One that was refused for another reason goes on where it was.
    found = request(*FIRED, ("retry-attempt", b"2"), RETRY, again)
    assert (found["delay_ms"], kept(found)[-1]) == (20_000, ("retry-attempt", b"3"))
    once = ("belfry-retry", b"attempts=1")
    assert refusal(*FIRED, once, again).code == "retries_exhausted"


def test_a_jitter_is_a_share_of_each_wait() -> None:
    rule = ("belfry-retry", b"first=5s jitter=10%")
    assert request(*FIRED, rule)["jitter_ms"] == 500
    assert request(*FIRED, rule, ("retry-attempt", b"1"))["jitter_ms"] == 1_000
    assert request(*FIRED, RETRY, ("belfry-jitter", b"7s"))["jitter_ms"] == 7_000
    assert "keep one of them" in refusal(*FIRED, rule, ("belfry-jitter", b"7s")).reason


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("belfry-retry", b"\xff"), "bad_header", "belfry-retry is no UTF-8"),
        (("belfry-retry", b"attempts=many"), "bad_header", "Header belfry-retry: attempts: 'many'"),
        (("belfry-in", b"5m"), "several_instants", "belfry-retry and belfry-in contradict"),
        (("belfry-retry", b""), "several_instants", "Header belfry-retry comes twice"),
        (("belfry-action", b"cancel"), "bad_header", "belfry-action is 'cancel': leave one out."),
        (("belfry-retries", b"1"), "unknown_header", "did you mean belfry-retry?"),
        (("belfry-retry-topic", b"t"), "unknown_header", "did you mean belfry-retry?"),
        (("belfry-schedule-type", b"\xff"), "bad_header", "belfry-schedule-… of the record"),
        (("belfry-schedule-tenant", b"\xff"), "bad_header", "is no UTF-8"),
        (("belfry-fire-id", b"\xff"), "bad_header", "is no UTF-8"),
    ],
)
def test_what_contradicts_is_refused(given: tuple[str, bytes], code: str, said: str) -> None:
    headers = [] if given[0] == "belfry-retry" and given[1] else [RETRY]
    found = refusal(*FIRED, *headers, given)
    assert (found.code, said in found.reason) == (code, True), found


def test_a_retry_behind_another_instant_contradicts_it_as_one_before_it_does() -> None:
    found = refusal(*FIRED, ("belfry-in", b"5m"), RETRY)
    assert (found.code, found.reason) == (
        *("several_instants", "belfry-in and belfry-retry contradict: keep one."),
    )
    spent = refusal(*FIRED, RETRY, ("belfry-in", b"5m"), ("retry-attempt", b"999"))
    assert spent.code == "several_instants"


def test_of_two_ids_of_an_event_the_later_says_whose_it_is() -> None:
    mine, made = ("ce_id", b"mine"), ("ce_id", FIRE)
    *others, attempt = kept(request(*FIRED, RETRY))
    assert kept(request(*FIRED, mine, made, RETRY)) == [*others, attempt]
    assert kept(request(*FIRED, made, mine, RETRY)) == [*others, made, mine, attempt]


def test_a_header_without_a_value_says_nothing() -> None:
    assert request(*FIRED, RETRY, ("belfry-retry", None)) == request(*FIRED, RETRY)
    assert request(*FIRED, RETRY, ("retry-attempt", None)) == request(*FIRED, RETRY)
    # The one before it counts, whichever header it is; else it would be tried for ever.
    nothing: Headers = [(name, None) for name in ("retry-attempt", *dict(FIRED))]
    counted = [*FIRED, ("retry-attempt", b"2"), RETRY]
    assert kept(request(*counted, *nothing)) == [
        *(each for each in kept(request(*counted)) if each[0] != "retry-attempt"),
        ("content-type", None),
        ("retry-attempt", b"3"),
    ]
    assert request(*counted, *nothing)["delay_ms"] == request(*counted)["delay_ms"] == 20_000
    assert request(*counted, *nothing)["schedule_id"] == NAME
    empty = request(*FIRED, ("belfry-schedule-group", b""), RETRY)
    assert empty["group"] is None


def test_a_letter_counts_the_last_failure() -> None:
    counted: Headers = [("retry-attempt", b"1"), *FIRED, ("retry-attempt", b"2"), RETRY]
    assert letter_headers(counted) == [*FIRED, RETRY, ("retry-attempt", b"3")]
    assert letter_headers([*FIRED, RETRY])[-1] == ("retry-attempt", b"1")
    odd: Headers = [("retry-attempt", b"two"), RETRY]
    assert letter_headers([*odd, ("belfry-origin-offset", b"1")]) == odd


def test_an_event_that_was_sent_again_is_no_repeat_of_its_retry() -> None:
    found = request(*FIRED, ("belfry-redriven", b"monday@41"), RETRY)
    names = found["schedule_id"], found["request_id"]
    assert names == (f"{NAME}/monday@41", f"{NAME}/monday@41")


class Heard:
    """Stands for a client, and keeps what it is asked for."""

    def schedule(self, tenant: str, schedule_id: str, **definition: Any) -> None:
        self.asked = {"tenant": tenant, "schedule_id": schedule_id, **definition}


@pytest.mark.parametrize("redriven", [[], [("belfry-redriven", b"monday@41")]])
@pytest.mark.parametrize("cloud_event", [False, True])
@pytest.mark.parametrize("count", [None, b"1", b"3"])
def test_it_becomes_the_schedule_that_a_client_makes(
    count: bytes | None, cloud_event: bool, redriven: Headers
) -> None:
    """So consumers in any language may take turns with one record."""
    made: Headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", FIRE if cloud_event else b"the user's"),
        ("ce_source", b"/x"),
        ("ce_type", b"charge"),
        ("ce_time", b"2027-01-15T08:00:00.000Z"),
    ]
    headers = [*FIRED, *made, *([] if count is None else [("retry-attempt", count)]), *redriven]
    heard = Heard()
    event = FiredRecord("belfry.fired.shop", 0, 0, None, b"4711", b"card 4711", headers)
    retry_later(cast("Asking", heard), event, Backoff("5s", 2, "1h", 8))
    found = request(*headers, RETRY)
    asked = heard.asked
    for name in ("tenant", "schedule_id", "request_id", "key", "payload", "event_type"):
        assert cast("Any", found)[name] == asked[name], name
    assert found["delay_ms"] == asked["in_"]
    as_bytes = [
        (name, value.encode() if isinstance(value, str) else value)
        for name, value in asked["headers"]
    ]
    assert kept(found) == as_bytes
