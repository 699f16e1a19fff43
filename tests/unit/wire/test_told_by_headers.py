"""Every refusal of the header protocol, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.rejections import Rejection
from belfry.wire.headers import PROTOCOL, asked_by, read_headers, unknown_header
from belfry.wire.record import Headers
from belfry.wire.requests import RequestReader
from tests.unit.wire.test_headers import AT, NAMED, refusal, request
from tests.unit.wire.test_retries import FIRED

KNOWN = ", ".join(sorted(PROTOCOL))
OWN = "Names that begin with belfry- are belfry's own: give a header of yours another name."
NO_LIST = (
    "{!r:.80} is no list of targets: give an address, or a JSON list of addresses and objects with"
    " url ({})"
)
NEEDS = (
    "HTTP target {} needs url, and may have headers, max_attempts, secret_ref, strategy, timeout_ms"
)
ODD = b"\xff" * 100
RETRY = ("belfry-retry", b"first=5s attempts=3")


def more(*given: tuple[str, bytes | None]) -> Headers:
    return [*NAMED, *given]


TOLD: list[tuple[Headers, str, str]] = [
    ([AT, ("belfry-id", b"x")], "no_tenant",
     "Header belfry-tenant is missing: it names the tenant."),
    ([AT, ("belfry-tenant", b"x")], "bad_schedule_id",
     "Header belfry-id is missing: it names the schedule."),
    (more(), "no_instant",
     ("One of belfry-at, belfry-in, belfry-every, belfry-cron, belfry-rrule, belfry-after-ack,"
     " belfry-after-group, belfry-retry has to say when.")),
    (more(AT, ("belfry-in", b"5m"), ("belfry-every", b"5m")), "several_instants",
     "belfry-at and belfry-in contradict: keep one."),
    (more(RETRY, ("belfry-in", b"5m"), ("belfry-every", b"5m")), "several_instants",
     "belfry-retry and belfry-in contradict: keep one."),
    (more(AT, ("belfry-group", b"a"), ("belfry-group", b"\xff")), "bad_header",
     ("Header belfry-group comes twice, as 'a' and '\ufffd': keep one of them, or give both the"
     " same value.")),
    (more(AT, ("belfry-at", b"1" * 100)), "several_instants",
     (f"Header belfry-at comes twice, as '2027-01-15T08:00:00Z' and '{'1' * 79}: keep one of them,"
     " or give both the same value.")),
    (more(AT, ("belfry-type", ODD)), "bad_header",
     f"Header belfry-type is no UTF-8: {ODD!r:.80}."),
    (more(("belfry-action", b"ack"), ("belfry-fire-id", b"\xff")), "bad_header",
     r"Header belfry-fire-id is no UTF-8: b'\xff'."),
    (more(AT, ("belfry-colour", b"x")), "unknown_header",
     f"Unknown header belfry-colour. Known are {KNOWN}. {OWN}"),
    (more(AT, ("belfry-tenan_t", b"x")), "unknown_header",
     f"Unknown header belfry-tenan_t; did you mean belfry-tenant? Known are {KNOWN}. {OWN}"),
    (more(AT, ("belfry-" + "q" * 100, b"x")), "unknown_header",
     f"Unknown header belfry-{'q' * 53}. Known are {KNOWN}. {OWN}"),
    (more(AT, ("belfry-max-fires", b"9223372036854775808")), "bad_header",
     "Header belfry-max-fires: '9223372036854775808' is too large: at most 9223372036854775807."),
    (more(AT, ("belfry-max-fires", b"-9223372036854775808")), "bad_header",
     "Header belfry-max-fires: '-9223372036854775808' is too large: at most 9223372036854775807."),
    (more(AT, ("belfry-max-fires", b"1" * 20)), "bad_header",
     f"Header belfry-max-fires: '{'1' * 20}' is no whole number, such as 3."),
    (more(AT, ("belfry-max-fires", b"--3")), "bad_header",
     "Header belfry-max-fires: '--3' is no whole number, such as 3."),
    (more(AT, ("belfry-serial", b"y" * 100)), "bad_header",
     f"Header belfry-serial: '{'y' * 79} is neither true nor false."),
    (more(AT, ("belfry-webhook", b"[{}]")), "bad_header",
     "Header belfry-webhook: " + NO_LIST.format("[{}]", NEEDS)),
    (more(RETRY, ("belfry-action", b"pause")), "bad_header",
     "Header belfry-retry: it puts a record back, and belfry-action is 'pause': leave one out."),
    (more(RETRY, ("belfry-action", b"x" * 50)), "bad_header",
     (f"Header belfry-retry: it puts a record back, and belfry-action is '{'x' * 39}: leave one"
     " out.")),
    (more(("belfry-retry", b"jitter=5%"), ("belfry-jitter", b"1s")), "bad_header",
     "Header belfry-retry: it has a jitter, and belfry-jitter is another one: keep one of them."),
    (more(RETRY, ("retry-attempt", b"x")), "bad_header",
     ("Header retry-attempt is no count of failed tries, such as 3: send it back as it came, and"
     " leave it out the first time.")),
    (more(RETRY, ("belfry-schedule-group", ODD)), "bad_header",
     ("Header belfry-retry: a header belfry-schedule-… of the record is no UTF-8:"
     f" {ODD!r:.80}.")),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "code", "reason"), TOLD, ids=lambda each: str(each)[:40])
def test_a_refusal_is_told_word_by_word(headers: Headers, code: str, reason: str) -> None:
    found = read_headers((0, 1_800_000_000_000, b"k", b"v", headers))
    assert found == Rejection(code, reason)


@pytest.mark.parametrize(
    ("attempts", "times"), [(1, "once"), (2, "twice"), (3, "3 times"), (200, "200 times")]
)
def test_a_dead_letter_is_told_how_often_it_failed(attempts: int, times: str) -> None:
    failed = b"%d" % (attempts - 1)
    found = refusal(("belfry-retry", b"attempts=%d" % attempts), ("retry-attempt", failed))
    assert found == Rejection(
        "retries_exhausted",
        f"The record failed {times}, and belfry-retry allows {attempts}: it is a dead letter now."
        " `belfry redrive rejected` has it tried anew.",
    )


def test_a_number_as_large_as_avro_has_room_for_is_read() -> None:
    for given, number in ((b"9223372036854775807", 2**63 - 1), (b" -7 ", -7), (b"007", 7)):
        assert request(AT, ("belfry-priority", given))["priority"] == number


def test_targets_are_an_address_or_a_list_wherever_blanks_stand() -> None:
    (alone,) = request(AT, ("belfry-webhook", b"  https://a.example/ "))["http_targets"]
    (listed,) = request(AT, ("belfry-webhook", b'  ["https://a.example/"]'))["http_targets"]
    assert alone == listed
    assert alone["url"] == "https://a.example/"


def test_whoever_asked_is_known_with_key_and_value() -> None:
    """A request that is refused is told by these, as one that is read is."""
    headers = more(("belfry-at", b"never"), ("belfry-request-id", b"r"))
    found: Any = asked_by((0, 0, b"k", b"v", headers))
    read: Any = request(AT, ("belfry-request-id", b"r"))
    assert found == {**read, "at": None, "kind": "AT"}
    again: Any = asked_by((0, 0, b"k", b"v", [*FIRED, ("belfry-retry", b"attempts=1")]))
    assert (again["key"], again["payload"], again["tenant"]) == (b"k", b"v", "shop")


def test_whoever_asked_is_known_by_the_fire_only_where_a_record_is_put_back() -> None:
    """A fired record that asks for something else names nobody: its headers are the user's."""
    at = ("belfry-at", b"never")
    for headers in ([*FIRED, at], [*FIRED, at, ("belfry-retry", None)]):
        found: Any = asked_by((0, 0, None, None, headers))
        names = found["tenant"], found["schedule_id"], found["request_id"]
        assert names == ("", "", None)


def test_whoever_asked_is_known_though_what_names_the_fire_is_no_text() -> None:
    odd: Headers = [("belfry-schedule-tenant", b"s\xffp"), ("belfry-fire-id", b"f\xff")]
    found: Any = asked_by((0, 0, None, None, [*odd, RETRY]))
    names = found["tenant"], found["schedule_id"], found["request_id"]
    assert names == ("s\ufffdp", "retry/f\ufffd", "retry/f\ufffd")


def test_an_unknown_name_is_met_wherever_it_stands_and_whatever_its_case() -> None:
    assert unknown_header(None) is None
    assert unknown_header([]) is None
    assert unknown_header([("mine", b"1"), ("belfry", b"1"), ("belfry_x", b"1")]) is None
    assert unknown_header([("belfry-origin-of-a-later-release", b"1"), ("belfry-id", b"")]) is None
    found = unknown_header([("mine", b"1"), ("BELFRY-COLOUR", None)])
    assert found is not None
    assert found.reason.startswith("Unknown header BELFRY-COLOUR. Known are ")


def test_a_signature_is_no_header_of_the_users() -> None:
    found = request(AT, ("belfry-signature", b"s"), ("mine", b"1"), ("belfry-origin-x", b"1"))
    assert found["headers"] == [{"name": "mine", "value": b"1"}]


def test_actions_may_be_written_in_any_case() -> None:
    for given in (b"CANCEL", b"cancel", b"Cancel"):
        assert request(("belfry-action", given))["action"] == "CANCEL"
    fire = ("belfry-fire-id", b"0f")
    acknowledged = request(("belfry-action", b"Ack"), ("belfry-fire-id", b"1"), fire)
    assert (acknowledged["action"], acknowledged["fire_id"]) == ("ACK", "0f")
    assert request(("belfry-action", b"ack"), ("belfry-fire-id", None))["fire_id"] == ""


def test_the_reader_comes_to_the_same() -> None:
    record = (0, 1, b"k", b"v", more(AT))
    assert RequestReader().read(record) == read_headers(record)
