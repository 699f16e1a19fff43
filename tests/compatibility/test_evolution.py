"""The changes that the evolution rule allows stay readable both ways; here it is shown how."""

from __future__ import annotations

import copy
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader
from fastavro.read import SchemaResolutionError

from belfry.wire import catalogue
from belfry.wire.catalogue import without_logical_types
from tests.compatibility.golden import MINIMAL, RICH, written

Schema = dict[str, Any]
EVERY = pytest.mark.parametrize("name", catalogue.names())


def read(body: bytes, writer: Schema, reader: Schema) -> dict[str, Any]:
    """A body of the writer's schema as a record of the reader's."""
    ours, theirs = (parse_schema(without_logical_types(each)) for each in (reader, writer))
    record: Any = schemaless_reader(BytesIO(body), theirs, ours)
    return dict(record)


def changed(name: str, change: Callable[[Schema], None]) -> Schema:
    """Our schema, changed."""
    schema = copy.deepcopy(catalogue.schema(name))
    change(schema)
    return schema


def add_optional(schema: Schema) -> None:
    """Add an optional field in the middle, which the rule allows anywhere."""
    new = {"name": "colour", "type": ["null", "string"], "default": None, "doc": "New."}
    schema["fields"].insert(1, new)


@EVERY
def test_an_optional_field_is_ignored_by_old_readers_and_null_for_new_ones(name: str) -> None:
    old, new = catalogue.schema(name), changed(name, add_optional)
    colourful = written(new, {**RICH[name], "colour": "blue"})
    assert read(colourful, new, old) == RICH[name]
    assert read(written(old, RICH[name]), old, new) == {**RICH[name], "colour": None}


@EVERY
def test_a_field_with_a_default_may_go(name: str) -> None:
    gone = next(each for each in catalogue.schema(name)["fields"] if "default" in each)["name"]

    def drop(schema: Schema) -> None:
        schema["fields"] = [each for each in schema["fields"] if each["name"] != gone]

    old, new = catalogue.schema(name), changed(name, drop)
    rest = {key: each for key, each in RICH[name].items() if key != gone}
    assert read(written(old, RICH[name]), old, new) == rest
    assert rest.items() <= read(written(new, rest), new, old).items()


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("ScheduleRequest", "action"),
        ("ScheduleRequest", "kind"),
        ("ScheduleRequest", "misfire"),
        ("LifecycleEvent", "outcome"),
        ("TenantPolicy", "delivery"),
        ("TenantPolicy", "guarantee"),
        ("TenantPolicy", "lifecycle"),
        ("TenantPolicy", "misfire"),
        ("TenantPolicy", "output"),
        ("AuditEvent", "result"),
    ],
)
def test_a_new_symbol_reads_as_unknown_and_old_symbols_as_ever(name: str, field: str) -> None:
    def add_symbol(schema: Schema) -> None:
        avro = next(each["type"] for each in schema["fields"] if each["name"] == field)
        enum = avro[1] if isinstance(avro, list) else avro
        enum["symbols"].append("NOVEL")

    old, new = catalogue.schema(name), changed(name, add_symbol)
    assert read(written(new, {**RICH[name], field: "NOVEL"}), new, old)[field] == "UNKNOWN"
    assert read(written(new, RICH[name]), new, old) == RICH[name]
    assert read(written(old, RICH[name]), old, new) == RICH[name]


def test_a_new_strategy_of_a_target_reads_as_unknown() -> None:
    def add_symbol(schema: Schema) -> None:
        targets = next(each for each in schema["fields"] if each["name"] == "http_targets")
        targets["type"]["items"]["fields"][-1]["type"]["symbols"].append("NOVEL")

    old, new = catalogue.schema("TenantPolicy"), changed("TenantPolicy", add_symbol)
    targets = [{"url": "https://a.example.com", "strategy": "NOVEL"}]
    body = written(new, {"tenant": "demo", "http_targets": targets})
    assert read(body, new, old)["http_targets"][0]["strategy"] == "UNKNOWN"


@EVERY
def test_a_required_field_is_what_the_rule_forbids(name: str) -> None:
    def add_required(schema: Schema) -> None:
        schema["fields"].append({"name": "boom", "type": "string"})

    with pytest.raises(SchemaResolutionError):
        read(
            written(catalogue.schema(name), MINIMAL[name]),
            catalogue.schema(name),
            changed(name, add_required),
        )
