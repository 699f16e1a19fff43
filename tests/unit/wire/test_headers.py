"""The header protocol: a record that schedules its own value, key and other headers."""

from __future__ import annotations

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.wire import catalogue, framing
from belfry.wire.headers import (
    PROTOCOL,
    TRAVELLING,
    WHEN,
    asked_by,
    read_headers,
    speaks_protocol,
    unknown_header,
)
from belfry.wire.record import ORIGIN_TENANT, Headers, Origin, origin_headers, origin_of
from belfry.wire.requests import RequestReader
from belfry.wire.unread import MOST_CARRIED, MOST_KEPT, MOST_READ, bounded

NAMED: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"order/1")]
AT = ("belfry-at", b"2027-01-15T08:00:00Z")


def read(
    *headers: tuple[str, bytes | None], value: bytes | None = b"v", key: bytes | None = b"k"
) -> Request | Rejection:
    return read_headers((0, 1_800_000_000_000, key, value, [*NAMED, *headers]))


def request(*headers: tuple[str, bytes | None], value: bytes | None = b"v") -> Request:
    found = read(*headers, value=value)
    assert not isinstance(found, Rejection)
    return found


def refusal(*headers: tuple[str, bytes | None]) -> Rejection:
    found = read(*headers)
    assert isinstance(found, Rejection)
    return found


def test_its_requests_have_every_field_of_the_schema() -> None:
    names = {field["name"] for field in catalogue.schema("ScheduleRequest")["fields"]}
    assert request(AT).keys() == names
    assert EMPTY.keys() == names - {"tenant", "schedule_id"}


def test_its_defaults_are_the_schemas() -> None:
    body = catalogue.encode("ScheduleRequest", {"tenant": "t", "schedule_id": "i"})
    read = catalogue.own_reader("ScheduleRequest").read(body)
    assert read == {"tenant": "t", "schedule_id": "i", **EMPTY}


@pytest.mark.parametrize(
    ("name", "given", "kind", "field", "expected"),
    [
        ("belfry-at", b"2027-01-15T08:00:00.001Z", "AT", "at", 1_800_000_000_001),
        ("belfry-at", b"2027-01-15T09:00:00+01:00", "AT", "at", 1_800_000_000_000),
        ("belfry-at", b"1800000000000", "AT", "at", 1_800_000_000_000),
        ("belfry-in", b"5m", "AFTER", "delay_ms", 300_000),
        ("belfry-in", b"PT5M", "AFTER", "delay_ms", 300_000),
        ("belfry-in", b"300000", "AFTER", "delay_ms", 300_000),
        ("belfry-every", b"30s", "EVERY", "interval_ms", 30_000),
        ("belfry-cron", b"0 9 * * MON", "CRON", "cron", "0 9 * * MON"),
    ],
)
def test_when(name: str, given: bytes, kind: str, field: str, expected: object) -> None:
    found = request((name, given))
    assert (found["kind"], found[field]) == (kind, expected)  # type: ignore[literal-required]


def test_the_other_fields() -> None:
    found = request(
        AT,
        ("belfry-action", b"create"),
        ("belfry-group", b"g"),
        ("belfry-type", b"t"),
        ("belfry-request-id", b"r"),
        ("belfry-timezone", b"Europe/Paris"),
    )
    assert (found["tenant"], found["schedule_id"], found["action"]) == ("demo", "order/1", "CREATE")
    assert (found["group"], found["event_type"], found["request_id"]) == ("g", "t", "r")


@pytest.mark.parametrize("name", sorted(PROTOCOL))
def test_a_header_of_belfrys_without_a_value_says_nothing(name: str) -> None:
    assert request((name, None), AT) == request(AT)


def test_value_and_key_become_the_events() -> None:
    found = request(AT)
    assert (found["payload"], found["key"]) == (b"v", b"k")
    assert request(AT, value=None)["payload"] is None


def test_other_headers_keep_order_repeats_and_nulls() -> None:
    others: Headers = [
        ("b", b"1"),
        ("a", None),
        ("b", b"2"),
        ("belfry-occurrence", b"x"),
        ("b", b""),
    ]
    found = request(others[0], AT, *others[1:])
    assert [(each["name"], each["value"]) for each in found["headers"]] == others


def test_origin_headers_are_belfrys() -> None:
    assert request(AT, ("belfry-origin-topic", b"t"))["headers"] == []


@pytest.mark.parametrize("name", sorted(PROTOCOL))
def test_what_is_no_utf_8_is_refused_by_name(name: str) -> None:
    headers: Headers = [each for each in [*NAMED, AT] if each[0] != name]
    found = read_headers((0, 1_800_000_000_000, b"k", b"v", [*headers, (name, b"\xff\xfe")]))
    assert isinstance(found, Rejection)
    assert found.code == "bad_header"
    assert f"Header {name} is no UTF-8" in found.reason


@pytest.mark.parametrize("name", sorted(PROTOCOL))
@pytest.mark.parametrize("given", [b"x", b"", b"\xff"])
def test_a_header_with_two_values_is_refused_by_name_and_both_of_them(
    name: str, given: bytes
) -> None:
    found = read_headers(
        (0, 1_800_000_000_000, b"k", b"v", [*NAMED, AT, (name, b"1"), (name, given)])
    )
    assert isinstance(found, Rejection)
    assert found.code == ("several_instants" if name in WHEN else "bad_header")
    assert f"Header {name} comes twice, as " in found.reason
    assert "keep one of them" in found.reason


def test_a_header_that_comes_twice_with_one_value_counts_once() -> None:
    group = "belfry-group", b"g"
    nothing = "belfry-group", None
    assert request(AT, group, nothing, AT, group, *NAMED) == request(AT, group)
    assert request(("belfry-in", b"5m"), ("belfry-in", b"5m")) == request(("belfry-in", b"5m"))
    # Thousands of them, of which each says something else, are told of by two.
    many = [("belfry-type", f"{each}".encode() * 1_000) for each in range(9)]
    assert len(refusal(AT, *many).reason) < 400


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (("belfry-at", b"tomorrow"), "'tomorrow' is no instant"),
        (("belfry-at", b"2027-01-15T08:00:00"), "no offset from UTC"),
        (("belfry-at", b""), "is no instant"),
        (("belfry-in", b"soon"), "'soon' is no duration"),
        (("belfry-in", b"-5m"), "negative"),
        (("belfry-every", b"P1M"), "no fixed length"),
    ],
)
def test_what_is_no_instant_is_refused_with_what_is_one(
    header: tuple[str, bytes], words: str
) -> None:
    found = refusal(header)
    assert found.code == "bad_header"
    assert words in found.reason


@pytest.mark.parametrize(
    "second", [("belfry-in", b"5m"), ("belfry-at", b"1800000000000"), ("belfry-cron", b"* * * * *")]
)
def test_contradicting_instants_are_refused(second: tuple[str, bytes]) -> None:
    found = refusal(AT, second)
    assert found.code == "several_instants"
    assert second[0] in found.reason


def test_a_schedule_needs_an_instant_and_a_cancel_does_not() -> None:
    assert refusal().code == "no_instant"
    assert refusal(("belfry-action", b"CREATE")).code == "no_instant"
    assert request(("belfry-action", b"CANCEL"))["action"] == "CANCEL"
    assert request(("belfry-action", b"trigger"))["action"] == "TRIGGER"


def test_an_acknowledgement_names_its_fire_in_a_header_that_else_is_the_users() -> None:
    fire = "belfry-fire-id", b"0f" * 16
    assert request(("belfry-action", b"ack"), fire)["fire_id"] == "0f" * 16
    kept = request(AT, fire)
    assert (kept["fire_id"], kept["headers"]) == (None, [{"name": fire[0], "value": fire[1]}])
    assert request(("belfry-action", b"ack"))["fire_id"] is None
    assert refusal(("belfry-action", b"ack"), ("belfry-fire-id", b"\xff")).code == "bad_header"


@pytest.mark.parametrize(
    ("left_out", "code"), [("belfry-tenant", "no_tenant"), ("belfry-id", "bad_schedule_id")]
)
def test_names_are_needed(left_out: str, code: str) -> None:
    headers = [AT, *(header for header in NAMED if header[0] != left_out)]
    found = read_headers((0, 0, None, None, headers))
    assert isinstance(found, Rejection)
    assert (found.code, left_out in found.reason) == (code, True)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("belfry-tz", "belfry-timezone"),
        ("belfry-timezon", "belfry-timezone"),
        ("Belfry-Timezone", "belfry-timezone"),
        ("belfry-request_id", "belfry-request-id"),
        ("belfry-requestid", "belfry-request-id"),
        ("belfry-tenat", "belfry-tenant"),
        ("belfry-delay-ms", "belfry-in"),
        ("belfry-event-type", "belfry-type"),
        ("belfry-acton", "belfry-action"),
        ("belfry-corn", "belfry-cron"),
    ],
)
def test_an_unknown_name_of_belfrys_is_refused_with_the_nearest_known_one(
    name: str, nearest: str
) -> None:
    found = refusal(AT, (name, b"x"))
    assert found.code == "unknown_header"
    assert found.reason.startswith(f"Unknown header {name}; did you mean {nearest}? Known are ")
    alone = unknown_header([("mine", b"x"), (name, None)])
    assert alone is not None
    assert alone.code == "unknown_header"


@pytest.mark.parametrize("name", ["belfry-colour", "belfry-", "belfry-x" * 9_000])
def test_a_name_that_is_near_to_none_is_refused_with_all_that_are_known(name: str) -> None:
    found = refusal(AT, (name, b"x"))
    assert (found.code, len(found.reason) < 1_000) == ("unknown_header", True)
    assert all(each in found.reason for each in PROTOCOL)


@pytest.mark.parametrize("name", sorted(TRAVELLING))
def test_what_belfry_puts_onto_records_may_come_in_again(name: str) -> None:
    """A failed message is put back with its headers as they were, and so is a rejected one."""
    assert request(AT, (name, b"x"))["headers"] == [{"name": name, "value": b"x"}]


def test_who_asks_is_known_though_the_request_is_refused() -> None:
    headers: Headers = [*NAMED, ("belfry-at", b"tomorrow"), ("belfry-request-id", b"r\xff")]
    found = asked_by((0, 0, None, b"v", headers))
    assert found is not None
    names = found["tenant"], found["schedule_id"], found["request_id"]
    assert names == ("demo", "order/1", "r\ufffd")
    own = asked_by((0, 0, None, b"v", [*headers, ("belfry-origin-tenant", b"own")]))
    assert own is not None
    assert own["tenant"] == "own"
    alone = asked_by((0, 0, None, b"v", [("belfry-request-id", b"")]))
    assert alone is not None
    assert (alone["tenant"], alone["schedule_id"], alone["request_id"]) == ("", "", "")
    assert asked_by((0, 0, None, b"v", [("mine", b"x")])) is None
    assert asked_by((0, 0, None, None, None)) is None


def test_only_the_protocols_own_names_speak_it() -> None:
    assert all(speaks_protocol([("x", None), (name, b"")]) for name in PROTOCOL)
    assert not speaks_protocol([("belfry-fire-id", b"1"), ("belfry-origin-topic", b"t")])
    assert not speaks_protocol([("belfry-tz", b"UTC")])
    assert not speaks_protocol([])


def test_reading_one_request_leaves_no_trace_in_the_next() -> None:
    first = request(AT, ("mine", b"1"), ("belfry-group", b"g"))
    second = request(AT)
    assert len(first["headers"]) == 1
    assert (second["headers"], second["group"], EMPTY["headers"]) == ([], None, [])


@pytest.mark.parametrize("name", ["belfry-at", "belfry-in", "belfry-every", "belfry-cron"])
def test_thousands_of_digits_are_no_number(name: str) -> None:
    """Python reads 4 300 at most; what it says of more is no help."""
    for digits in (20, 4_000, 5_000, 500_000):
        found = refusal((name, b"9" * digits)) if name != "belfry-cron" else None
        if found is not None:
            assert found.code == "bad_header"
            assert len(found.reason) < 500
            assert "limit" not in found.reason


def test_thousands_of_digits_are_no_origin() -> None:
    told = origin_headers(Origin("t", 1, 2, 1_800_000_000_000, rerouted=True), asked=1)
    for place in range(1, len(told)):
        headers = [*told]
        headers[place] = (headers[place][0], b"9" * 5_000)
        record = (5, 1_800_000_000_000, None, b"v", headers)
        assert origin_of(record, "here", 3).topic in ("here", "t")
        assert len(str(origin_of(record, "here", 3))) < 200


def of(count: int, *more: tuple[str, bytes | None]) -> Rejection | Request:
    """The answer to a record of so many headers, as the reader of the topic hands them out."""
    headers: Headers = [*NAMED, AT, *[("", None)] * (count - 3 - len(more)), *more]
    return RequestReader().read_whole((0, 0, b"k", b"v", bounded(headers)))


def test_a_record_of_very_many_headers_is_refused_and_only_the_first_are_kept() -> None:
    """A megabyte holds half a million of them."""
    for count in (MOST_READ + 1, MOST_CARRIED, MOST_CARRIED + 1, 400_000):
        found = of(count)
        assert isinstance(found, Rejection)
        assert found.code == "bad_fields"
        shown = str(count) if count <= MOST_CARRIED else f"more than {MOST_KEPT + 1}"
        assert f"The record has {shown} headers" in found.reason
    kept = bounded([*NAMED, *[("", None)] * 400_000])
    assert kept is not None
    assert len(kept) == MOST_KEPT + 1
    assert kept[-1] == ("belfry-error-cut", b"cut from 400002 headers")
    asked = asked_by((0, 0, None, None, kept))
    assert asked is not None
    assert asked["tenant"] == "demo"


def test_what_belfry_adds_on_the_way_does_not_make_a_request_too_large() -> None:
    origin = origin_headers(Origin("t", 1, 2, 3, rerouted=True), asked=1)
    assert not isinstance(of(MOST_READ), Rejection)
    assert not isinstance(of(MOST_READ + len(origin), *origin), Rejection)


def test_headers_that_all_say_nothing_are_no_request() -> None:
    assert not speaks_protocol([(name, None) for name in sorted(PROTOCOL)])
    assert speaks_protocol([AT])


def test_a_request_from_a_tenants_own_topic_is_that_tenants_whatever_it_says() -> None:
    assert request(AT)["tenant"] == "demo"
    assert request(AT, (ORIGIN_TENANT, b"shop"))["tenant"] == "shop"
    body = catalogue.encode("ScheduleRequest", {"tenant": "demo", "schedule_id": "i", "at": 1})
    value = framing.single_object("ScheduleRequest") + body
    found = RequestReader().read_whole((0, 1, None, value, [(ORIGIN_TENANT, b"shop")]))
    assert not isinstance(found, Rejection)
    assert found["tenant"] == "shop"


def test_what_is_asked_by_headers_carries_the_records_key_and_value() -> None:
    found = request(AT, value=b"payload")
    assert (found["key"], found["payload"]) == (b"k", b"payload")


@pytest.mark.parametrize("value", [b"hello", None])
@pytest.mark.parametrize(
    "tenant",
    ["belfry_tenant", "Belfry-Tenant", "x-belfry-tenant", "X_BELFRY_TENANT"],
)
def test_a_record_whose_headers_are_all_misspelt_is_told_so(
    tenant: str, value: bytes | None
) -> None:
    """A null value would cancel by its key: what was to be a schedule of a tombstone."""
    headers: Headers = [(tenant, b"demo"), ("belfry_id", b"a"), ("belfry_in", b"5m")]
    found = RequestReader().read_whole((0, 1_800_000_000_000, b"demo/a", value, headers))
    assert isinstance(found, Rejection)
    assert found.code == "unknown_header"
    assert f"Unknown header {tenant}; did you mean belfry-tenant?" in found.reason


@pytest.mark.parametrize(
    ("key", "code"), [(b"orders", "unknown_header"), (None, "unknown_header"), (b"demo/a", None)]
)
def test_a_misspelt_header_of_a_null_value_is_told_at_once_where_its_key_names_nobody(
    key: bytes | None, code: str | None
) -> None:
    """Else the engine refuses the cancel, under the names in the key."""
    found = RequestReader().read_whole((0, 1, key, None, [("belfry-tenent", b"demo")]))
    assert (found.code if isinstance(found, Rejection) else None) == code


def test_headers_of_users_with_such_names_cancel_and_travel() -> None:
    mine: Headers = [("belfry_colour", b"red"), ("x-belfry", b"1")]
    cancel = RequestReader().read_whole((0, 1_800_000_000_000, b"demo/a", None, mine))
    assert not isinstance(cancel, Rejection)
    assert cancel["action"] == "CANCEL"
    assert [each["name"] for each in request(AT, ("belfry_at", b"1"))["headers"]] == ["belfry_at"]


@pytest.mark.parametrize(
    "name",
    ["belfry-tenant", "belfry_tenant", "X-Belfry-In", "traceparent", "X-B3-TraceId", "ce_type",
     "content-type", "__connect.errors.topic", "__TypeId__", "belfry-origin-later",
     *sorted(TRAVELLING)],
)  # fmt: skip
def test_headers_that_say_nothing_of_a_schedule_let_a_null_value_cancel(name: str) -> None:
    """Who makes headers of columns has one for each column, a null where it says nothing."""
    given = None if "tenant" in name or "In" in name else b"1"
    record = (0, 1_800_000_000_000, b"demo/a", None, [(name, given)])
    cancel = RequestReader().read_whole(record)
    assert not isinstance(cancel, Rejection)
    assert (cancel["action"], cancel["tenant"], cancel["schedule_id"]) == ("CANCEL", "demo", "a")
