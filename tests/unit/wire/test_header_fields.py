"""Each field of a request has a header of its own, and a value that cannot be read is refused."""

from __future__ import annotations

import pytest

from belfry.schedules.field import Field
from belfry.schedules.fields import FIELDS
from belfry.schedules.rejections import Rejection
from belfry.wire.headers import FIRE_ID, WHEN, read_headers
from tests.unit.wire.test_headers import AT, NAMED, refusal, request

# What is none of the headers of belfry, and why.
WITHOUT_HEADER = {
    "kind": "follows from the header that says when",
    "key": "is the record's own key",
    "payload": "is the record's own value",
    "headers": "are the record's other headers",
    "standing": "is sent by `belfry schedule import` alone",
}
TARGET: dict[str, object] = {"url": "https://a.example/x", "timeout_ms": 5_000}
WHOLE_TARGET: dict[str, object] = {
    "max_attempts": 0,
    "secret_ref": None,
    "headers": [],
    "strategy": "ALL",
}
GIVEN: dict[str, tuple[bytes, object]] = {
    "tenant": (b"other", "other"),
    "schedule_id": ("é".encode(), "é"),
    "action": (b"create", "CREATE"),
    "at": (b"2027-01-15T08:00:00Z", 1_800_000_000_000),
    "delay_ms": (b"5m", 300_000),
    "interval_ms": (b"30s", 30_000),
    "cron": (b"@daily", "@daily"),
    "rrule": (b"FREQ=DAILY", "FREQ=DAILY"),
    "timezone": (b"Europe/Paris", "Europe/Paris"),
    "start_at": (b"1800000000000", 1_800_000_000_000),
    "end_at": (b"2027-01-15T08:00:00Z", 1_800_000_000_000),
    "max_fires": (b"3", 3),
    "jitter_ms": (b"PT5M", 300_000),
    "misfire": (b"SKIP", "SKIP"),
    "max_lateness_ms": (b"0", 0),
    "event_type": (b"t", "t"),
    "group": (b"g", "g"),
    "expected_version": (b"7", 7),
    "request_id": (b"r", "r"),
    "reason": (b"why not", "why not"),
    "http_targets": (
        b'["https://a.example/y", {"url": "https://a.example/x", "timeout_ms": 5000}]',
        [
            {**WHOLE_TARGET, "url": "https://a.example/y", "timeout_ms": 10_000},
            {**WHOLE_TARGET, **TARGET},
        ],
    ),
    "overlap": (b"QUEUE_ALL", "QUEUE_ALL"),
    "serial": (b"True", True),
    "ack_timeout_ms": (b"10m", 600_000),
    "bulk": (b"{}", "{}"),
    "except_cron": (b"* 0-5 * * *", "* 0-5 * * *"),
    "max_wait_ms": (b"1h", 3_600_000),
    "throttle_ms": (b"1h", 3_600_000),
    "concurrency": (b"2", 2),
    "calendar": (b"de", "de"),
    "on_holiday": (b"SKIP", "SKIP"),
    "days_off": (b"{}", "{}"),
    "after_ack": (b"x", "x"),
    "after_group": (b"g", "g"),
    "ack_delay_ms": (b"5m", 300_000),
    "priority": (b"-2", -2),
    "latest_at": (b"2027-01-15T08:00:00Z", 1_800_000_000_000),
}


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_every_field_of_a_request_has_a_header(field: Field) -> None:
    """Whoever adds a field gives it a header, or says here why it has none."""
    if field.name in WITHOUT_HEADER:
        assert not field.header
        return
    if field.name == "fire_id":
        acknowledged = request(("belfry-action", b"ack"), (FIRE_ID, b"f"))
        assert acknowledged["fire_id"] == "f"
        return
    given, expected = GIVEN[field.name]
    said = {**dict(NAMED), **dict([] if field.header in WHEN else [AT]), field.header: given}
    found = read_headers((0, 1_800_000_000_000, b"k", b"v", [*said.items()]))
    assert not isinstance(found, Rejection)
    assert found[field.name] == expected  # type: ignore[literal-required]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("belfry-max-fires", b"three"),
        ("belfry-max-fires", b"\xd9\xa3"),
        ("belfry-max-fires", b"9" * 19),
        ("belfry-expected-version", b"1" * 5_000),
        ("belfry-serial", b"1"),
        ("belfry-webhook", b"[1]"),
        ("belfry-webhook", b'[{"url": 5}]'),
        ("belfry-webhook", b'[{"url": null}]'),
        ("belfry-webhook", b'[{"url": "https://a.example", "timeout_ms": null}]'),
        ("belfry-webhook", b'[{"url": "https://a.example", "max_attempts": null}]'),
        ("belfry-webhook", b'[{"url": "https://a.example", "secret_ref": "\\ud800"}]'),
        ("belfry-webhook", b'[{"url": "https://a.example", "timeout_ms": "1"}]'),
        ("belfry-webhook", b'[{"url": "https://a.example", "headers": [{"name": 1}]}]'),
        ("belfry-webhook", b'[{"url": "https://a.example", "colour": "red"}]'),
        ("belfry-webhook", b"[" * 100_000),
    ],
)
def test_a_value_that_cannot_be_read_is_refused(name: str, given: bytes) -> None:
    found = refusal(AT, (name, given))
    assert (found.code, len(found.reason) < 500) == ("bad_header", True)
    assert name in found.reason


NOT_THREE = "'three' is no whole number, such as 3."


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("belfry-max-fires", "three", NOT_THREE),
        ("belfry-max-fires", "x" * 100, "'" + "x" * 79 + " is no whole number, such as 3."),
        ("belfry-serial", "1", "'1' is neither true nor false."),
        (
            "belfry-timezone",
            "",
            (
                "'' is no time zone: give an IANA name such as Europe/Paris, or leave the header"
                " out, which is UTC."
            ),
        ),
    ],
)
def test_a_value_is_told_with_what_is_allowed(name: str, given: str, said: str) -> None:
    assert refusal(AT, (name, given.encode())).reason == f"Header {name}: {said}"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ('"timeout_ms": "1"', "(timeout_ms is '1', which is no int)"),
        ('"secret_ref": 1', "(secret_ref is 1, which is no str)"),
        ('"headers": [{"name": 1, "value": "v"}]',
         "(header {'name': 1, 'value': 'v'} is not two texts)"),
        ('"headers": [{"name": "n", "value": 1}]',
         "(header {'name': 'n', 'value': 1} is not two texts)"),
        ('"headers": [{"name": "n", "value": "\\ud800"}]', "surrogates not allowed"),
        ('"headers": [{"name": "\\ud800", "value": "v"}]', "surrogates not allowed"),
    ],
)  # fmt: skip
def test_a_target_with_a_field_of_another_type_is_refused_by_its_name(
    fields: str, why: str
) -> None:
    given = f'[{{"url": "https://a.example", {fields}}}]'
    assert why in refusal(AT, ("belfry-webhook", given.encode())).reason


def test_a_target_may_have_headers() -> None:
    given = b'[{"url": "https://a.example", "headers": [{"name": "n", "value": "v"}]}]'
    (target,) = request(AT, ("belfry-webhook", given))["http_targets"]
    assert target["headers"] == [{"name": "n", "value": "v"}]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("belfry-jiter", "belfry-jitter"),
        ("belfry-misfires", "belfry-misfire"),
        ("belfry-until", "belfry-end-at"),
        ("belfry-delay_ms", "belfry-in"),
        ("belfry-ack-timeout-ms", "belfry-ack-timeout"),
        ("BELFRY-Overlaps", "belfry-overlap"),
        ("belfry-if-match", "belfry-expected-version"),
    ],
)
def test_a_slip_is_told_the_nearest_name(given: str, meant: str) -> None:
    assert f"did you mean {meant}?" in refusal(AT, (given, b"1")).reason
