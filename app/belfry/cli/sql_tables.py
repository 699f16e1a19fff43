"""Tables over belfry's topics in the SQL of Flink and of ksqlDB, made from the schemas.

    belfry.fired.<tenant>   the user's bytes as they are, belfry's headers as columns   *_fired
                            or the fields of FiredEvent, for ENVELOPE tenants           *_envelopes
    belfry.lifecycle        the fields of LifecycleEvent                                *_lifecycle

Columns have the names of the schemas' fields.  Both readers see committed records alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from belfry.wire import catalogue

Column = tuple[str, str]

# Of an Avro type: (Flink's, ksqlDB's).  Flink reads an instant as a TIMESTAMP of UTC.
_TYPES: Final = {
    "string": ("STRING", "STRING"),
    "enum": ("STRING", "STRING"),
    "bytes": ("BYTES", "BYTES"),
    "boolean": ("BOOLEAN", "BOOLEAN"),
    "int": ("INT", "INT"),
    "long": ("BIGINT", "BIGINT"),
    "timestamp-millis": ("TIMESTAMP(3)", "TIMESTAMP"),
}
_FLINK, _KSQLDB = 0, 1
# Headers that belfry adds to an event: header, column, and how Flink reads its text.
_ADDED: Final = (
    ("belfry-fire-id", "fire_id", "{}"),
    ("belfry-schedule-id", "schedule_id", "{}"),
    (
        "belfry-scheduled-at",
        "scheduled_at",
        "TO_TIMESTAMP(REPLACE(REPLACE({}, 'T', ' '), 'Z', ''), 'yyyy-MM-dd HH:mm:ss.SSS')",
    ),
    ("belfry-occurrence", "occurrence", "CAST({} AS BIGINT)"),
)


@dataclass(frozen=True)
class Place:
    """Where the topics are; `registry` is None without a schema registry."""

    brokers: str
    prefix: str
    registry: str | None

    def fired(self, tenant: str) -> str:
        """The topic of a tenant's events."""
        return f"{self.prefix}fired.{tenant}"


def flink(place: Place, tenants: list[str], enveloped: list[str]) -> Iterator[str]:
    """Statements for Flink: all tenants' events if none is named; `enveloped` have their fields.

    Statements that need a registry are left out without one.
    """
    if tenants:
        topics = ("topic", ";".join(map(place.fired, tenants)))
    else:
        topics = ("topic-pattern", re.escape(place.fired("")) + ".+")
    yield _flink_fired(place, topics)
    if place.registry is None:
        return
    if enveloped:
        topics = ("topic", ";".join(map(place.fired, enveloped)))
        yield _flink_avro(place, "belfry_envelopes", "FiredEvent", "fired_at", topics)
    lifecycle = ("topic", f"{place.prefix}lifecycle")
    yield _flink_avro(place, "belfry_lifecycle", "LifecycleEvent", "at", lifecycle)


def _flink_fired(place: Place, topics: tuple[str, str]) -> str:
    text = "CAST(`headers`['{}'] AS STRING)"
    columns = [
        "`event_key` BYTES",
        "`payload` BYTES",
        "`topic` STRING NOT NULL METADATA VIRTUAL",
        "`headers` MAP<STRING NOT NULL, BYTES> METADATA VIRTUAL",
        "`written_at` TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL",
        f"`tenant` AS SUBSTRING(`topic` FROM {len(place.fired('')) + 1})",
        *(f"`{name}` AS {how.format(text.format(header))}" for header, name, how in _ADDED),
        "WATERMARK FOR `written_at` AS `written_at` - INTERVAL '5' SECOND",
    ]
    formats = (
        ("key.format", "raw"),
        ("key.fields", "event_key"),
        ("value.format", "raw"),
        ("value.fields-include", "EXCEPT_KEY"),
    )
    return _flink_table("belfry_fired", columns, [*_from_kafka(place, topics), *formats])


def _flink_avro(place: Place, table: str, schema: str, time: str, topics: tuple[str, str]) -> str:
    columns = [f"`{name}` {kind}" for name, kind in columns_of(schema, _FLINK)]
    columns.append(f"WATERMARK FOR `{time}` AS `{time}` - INTERVAL '5' SECOND")
    formats = (
        ("value.format", "avro-confluent"),
        ("value.avro-confluent.url", str(place.registry)),
        # Without it Flink would ask for strings where the records have enums.
        ("value.avro-confluent.schema", json.dumps(_bare(catalogue.schema(schema)))),
    )
    return _flink_table(table, columns, [*_from_kafka(place, topics), *formats])


def _from_kafka(place: Place, topics: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (
        ("connector", "kafka"),
        topics,
        ("properties.bootstrap.servers", place.brokers),
        ("properties.isolation.level", "read_committed"),
        ("scan.startup.mode", "earliest-offset"),
    )


def _flink_table(table: str, columns: list[str], options: list[tuple[str, str]]) -> str:
    inside = ",\n".join(f"  {each}" for each in columns)
    given = ",\n".join(f"  {_quoted(name)} = {_quoted(value)}" for name, value in options)
    return f"CREATE TABLE `{table}` (\n{inside}\n) WITH (\n{given}\n);"


def ksqldb(place: Place, tenants: list[str], enveloped: list[str]) -> Iterator[str]:
    """Statements for ksqlDB: a stream for each tenant; the lifecycle needs a registry."""
    # Exactly once is what makes it read committed records alone.
    yield "SET 'processing.guarantee' = 'exactly_once_v2';"
    yield "SET 'auto.offset.reset' = 'earliest';"
    for each in tenants:
        columns = ["`event_key` BYTES KEY", "`payload` BYTES"]
        columns += [f"`{name}` BYTES HEADER({_quoted(header)})" for header, name, _ in _ADDED]
        yield _stream("belfry_fired", each, place.fired(each), columns, "KAFKA")
    if place.registry is None:
        return
    for each in enveloped:
        columns = ["`event_key` BYTES KEY", *_ksqldb_columns("FiredEvent")]
        yield _stream("belfry_envelopes", each, place.fired(each), columns, "AVRO")
    columns = ["`event_key` STRING KEY", *_ksqldb_columns("LifecycleEvent")]
    yield _stream("belfry_lifecycle", "", f"{place.prefix}lifecycle", columns, "AVRO")


def _ksqldb_columns(schema: str) -> list[str]:
    return [
        f"`{name}` {kind.removesuffix(' NOT NULL')}" for name, kind in columns_of(schema, _KSQLDB)
    ]


def _stream(table: str, tenant: str, topic: str, columns: list[str], form: str) -> str:
    name = f"{table}_{tenant}" if tenant else table
    inside = ",\n".join(f"  {each}" for each in columns)
    options = f"KAFKA_TOPIC = {_quoted(topic)}, KEY_FORMAT = 'KAFKA', VALUE_FORMAT = '{form}'"
    return f"CREATE STREAM `{name}` (\n{inside}\n) WITH ({options});"


def columns_of(schema: str, dialect: int = _FLINK) -> Iterator[Column]:
    """Name and type of each field of a record of the catalogue, in the order of the schema."""
    for field in catalogue.schema(schema)["fields"]:
        yield field["name"], _type(field["type"], dialect)


def _type(avro: Any, dialect: int) -> str:
    if isinstance(avro, list):
        (inner,) = (each for each in avro if each != "null")
        return _type(inner, dialect).removesuffix(" NOT NULL")
    if isinstance(avro, dict):
        avro = avro.get("logicalType") or avro["type"]
    return f"{_TYPES[avro][dialect]} NOT NULL"


def _bare(schema: Any) -> Any:
    """A schema without its texts for people."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if isinstance(schema, dict):
        return {name: _bare(each) for name, each in schema.items() if name != "doc"}
    return schema


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
