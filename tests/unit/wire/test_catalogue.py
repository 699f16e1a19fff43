"""The schemas are what the contract says they are, and every record of them has one reading."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import schemaless_reader

from belfry.wire import catalogue
from belfry.wire.catalogue import MalformedError, RecordReader

MINIMAL: dict[str, dict[str, Any]] = {
    "ScheduleRequest": {"tenant": "demo", "schedule_id": "a"},
    "FiredEvent": {
        "tenant": "demo",
        "schedule_id": "a",
        "fire_id": "f",
        "scheduled_at": 1,
        "due_at": 2,
        "fired_at": 3,
    },
    "LifecycleEvent": {"tenant": "demo", "schedule_id": "a", "at": 1},
    "TenantPolicy": {"tenant": "demo"},
    "AuditEvent": {"at": 1, "action": "schedule.create"},
}
FIELDS = {
    "ScheduleRequest": (
        "tenant schedule_id action kind at delay_ms interval_ms cron timezone start_at end_at"
        " max_fires jitter_ms misfire max_lateness_ms event_type group key payload headers"
        " expected_version request_id reason fire_id http_targets overlap serial ack_timeout_ms"
        " standing rrule bulk except_cron max_wait_ms throttle_ms concurrency calendar on_holiday"
        " days_off after_ack after_group ack_delay_ms latest_at priority"
    ),
    "FiredEvent": (
        "tenant schedule_id fire_id version occurrence scheduled_at due_at fired_at event_type"
        " group missed payload"
    ),
    "LifecycleEvent": (
        "tenant schedule_id outcome request_id fire_id version at due_at code reason target attempt"
        " source_topic source_partition source_offset"
    ),
    "TenantPolicy": (
        "tenant output_topic delivery cloudevents guarantee spread lifecycle misfire look_back_ms"
        " max_pending max_requests_per_second max_fires_per_second priority history_ms paused"
        " http_targets retry_max_attempts retry_initial_ms retry_max_ms retry_max_age_ms"
        " allowed_hosts former_spreads removed signing_secret_ref secret_refs output"
        " remember_ms payload_key_ref source_header claim_check_over_bytes"
    ),
    "AuditEvent": (
        "at action result via caller role source_address tenant object status outcome code"
        " request_id trace_id worker count objects changes source_topic source_partition"
        " source_offset reason"
    ),
}
EVERY = pytest.mark.parametrize("name", catalogue.names())


def types_of(schema: Any) -> Iterator[dict[str, Any]]:
    """All complex types of a schema, the outermost first."""
    if isinstance(schema, list):
        for branch in schema:
            yield from types_of(branch)
    elif isinstance(schema, dict):
        yield schema
        yield from types_of(schema.get("items"))
        for field in schema.get("fields", ()):
            yield from types_of(field["type"])


@EVERY
def test_fields_stand_in_the_order_of_the_contract(name: str) -> None:
    assert [each["name"] for each in catalogue.schema(name)["fields"]] == FIELDS[name].split()


@EVERY
def test_file_is_named_after_the_record(name: str) -> None:
    assert catalogue.schema(name)["name"] == name
    assert catalogue.schema(name)["namespace"] == "io.belfry"
    assert catalogue.schema("io.belfry." + name) == catalogue.schema(name)


@EVERY
def test_everything_is_documented(name: str) -> None:
    for each in types_of(catalogue.schema(name)):
        if "name" in each:
            assert each["doc"].endswith(".")
        for field in each.get("fields", ()):
            assert field["doc"].endswith(".")


@EVERY
def test_every_enum_falls_back_to_unknown(name: str) -> None:
    for each in types_of(catalogue.schema(name)):
        if each["type"] == "enum":
            assert each["symbols"][0] == each["default"] == "UNKNOWN"


@EVERY
def test_only_identities_and_instants_have_no_default(name: str) -> None:
    required = {each["name"] for each in catalogue.schema(name)["fields"] if "default" not in each}
    assert required == set(MINIMAL[name])


@EVERY
def test_optional_fields_are_null_first(name: str) -> None:
    for each in types_of(catalogue.schema(name)):
        for field in each.get("fields", ()):
            if isinstance(field["type"], list):
                assert field["type"][0] == "null"
                assert field["default"] is None


@EVERY
def test_durations_are_longs_with_their_unit_and_instants_are_timestamps(name: str) -> None:
    for field in catalogue.schema(name)["fields"]:
        avro = field["type"][1] if isinstance(field["type"], list) else field["type"]
        is_instant = avro == {"type": "long", "logicalType": "timestamp-millis"}
        assert is_instant == (field["name"] == "at" or field["name"].endswith("_at"))
        if field["name"].endswith("_ms"):
            assert avro == "long"


def test_types_of_the_same_name_are_the_same_in_every_schema() -> None:
    seen: dict[str, dict[str, Any]] = {}
    for name in catalogue.names():
        for each in types_of(catalogue.schema(name)):
            if "name" in each:
                assert seen.setdefault(each["name"], each) == each
    assert "HttpTarget" in seen


def test_plain_instants_stay_milliseconds_and_parsed_ones_are_datetimes() -> None:
    body = catalogue.encode("FiredEvent", MINIMAL["FiredEvent"])
    assert catalogue.own_reader("FiredEvent").read(body)["due_at"] == 2
    record: Any = schemaless_reader(BytesIO(body), catalogue.parsed("FiredEvent"), None)
    assert record["due_at"] == datetime.fromtimestamp(0.002, UTC)


def test_logical_types_go_and_defaults_stay() -> None:
    schema = {"type": [{"type": "long", "logicalType": "date"}], "default": {"logicalType": 1}}
    assert catalogue.without_logical_types(schema) == {
        "type": [{"type": "long"}],
        "default": {"logicalType": 1},
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    # From the Avro project's own test vectors, as little-endian bytes of the signed numbers.
    [("null", 7195948357588979594), ("int", 8247732601305521295), ("long", -3434872931120570953)],
)
def test_fingerprints_are_avros(schema: str, expected: int) -> None:
    assert catalogue.fingerprint_of(schema) == expected.to_bytes(8, "little", signed=True)


@EVERY
def test_fingerprints_lead_back_to_the_schema(name: str) -> None:
    assert catalogue.by_fingerprint(catalogue.fingerprint(name)) == catalogue.schema(name)
    assert len(catalogue.fingerprint(name)) == 8


def test_a_strange_fingerprint_leads_nowhere() -> None:
    assert catalogue.by_fingerprint(b"12345678") is None


def test_a_strange_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(KeyError) as told:
        catalogue.schema("Schedule")
    (reason,) = told.value.args
    assert reason == (
        "No schema is called 'Schedule'; there are ScheduleRequest, FiredEvent, LifecycleEvent,"
        " TenantPolicy, AuditEvent."
    )


@pytest.mark.parametrize("name", ["ScheduleRequest", "TenantPolicy", "AuditEvent"])
def test_fingerprints_of_earlier_releases_lead_to_their_schemas(name: str) -> None:
    path = Path(__file__).parents[3] / "schemas" / "earlier" / f"io.belfry.{name}.0.1.0.avsc"
    earlier = json.loads(path.read_bytes())
    assert earlier != catalogue.schema(name)
    assert catalogue.by_fingerprint(catalogue.fingerprint_of(earlier)) == earlier


@EVERY
def test_what_is_left_out_is_filled_in(name: str) -> None:
    body = catalogue.encode(name, MINIMAL[name])
    record = catalogue.own_reader(name).read(body)
    assert list(record) == FIELDS[name].split()
    assert record.items() >= MINIMAL[name].items()


def test_defaults_of_a_request() -> None:
    body = catalogue.encode("ScheduleRequest", MINIMAL["ScheduleRequest"])
    record = catalogue.own_reader("ScheduleRequest").read(body)
    given = {key: value for key, value in record.items() if value is not None}
    assert given == {
        "tenant": "demo",
        "schedule_id": "a",
        "action": "UPSERT",
        "kind": "AT",
        "headers": [],
        "http_targets": [],
        "serial": False,
    }


def test_a_writer_of_fewer_fields_is_read_with_our_defaults() -> None:
    writer = {
        "type": "record",
        "name": "com.acme.ScheduleRequest",
        "fields": [
            {"name": "schedule_id", "type": "string"},
            {"name": "tenant", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
    reader = RecordReader("ScheduleRequest", writer)
    record = reader.read(b"\x02a\x08demo\x80\x01")
    assert (record["tenant"], record["schedule_id"], record["at"]) == ("demo", "a", 64)
    assert record["action"] == "UPSERT"


@pytest.mark.parametrize(
    "body",
    [b"", b"\x08dem", b"\x02\xff\x02a", b"\x08demo\x02a\x63", b"\x08demo\x02a\x02\x02\x08"],
    ids=["empty", "truncated", "no UTF-8", "enum index", "union index"],
)
def test_what_is_no_record_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError, match=r"are no io\.belfry\.ScheduleRequest"):
        catalogue.own_reader("ScheduleRequest").read(body)


def test_bytes_after_the_record_are_malformed() -> None:
    body = catalogue.encode("TenantPolicy", MINIMAL["TenantPolicy"])
    with pytest.raises(MalformedError) as told:
        catalogue.own_reader("TenantPolicy").read(body + b"abc")
    assert str(told.value) == (
        f"3 of {len(body) + 3} bytes follow the io.belfry.TenantPolicy: the schema id or"
        " fingerprint names another schema than the one it was written with."
    )


def test_what_is_wrong_with_a_record_is_told_in_200_characters_at_most() -> None:
    reader = catalogue.own_reader("TenantPolicy")
    with pytest.raises(MalformedError) as told:
        reader.read(b"\2\xff")
    assert str(told.value) == (
        "2 bytes are no io.belfry.TenantPolicy of their writer's schema: UnicodeDecodeError:"
        " 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    )
    other = RecordReader("TenantPolicy", catalogue.schema("ScheduleRequest"))
    with pytest.raises(MalformedError) as told:
        other.read(catalogue.encode("ScheduleRequest", MINIMAL["ScheduleRequest"]))
    assert len(str(told.value).partition("Error: ")[2]) == 200


def test_another_record_is_malformed() -> None:
    reader = RecordReader("TenantPolicy", catalogue.schema("ScheduleRequest"))
    with pytest.raises(MalformedError, match="SchemaResolutionError"):
        reader.read(catalogue.encode("ScheduleRequest", MINIMAL["ScheduleRequest"]))
