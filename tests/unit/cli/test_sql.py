"""`belfry sql`: tables with the schemas' columns, which read committed records alone."""

from __future__ import annotations

import json
import re

import pytest

from belfry.cli.entry import main
from belfry.cli.sql_tables import Place, columns_of, flink, ksqldb
from belfry.wire.catalogue import schema
from tests.architecture.tree import ROOT

PLACE = Place("kafka-1:9092,kafka-2:9092", "belfry.", "http://registry:8081")
WITHOUT_REGISTRY = Place("kafka:9092", "belfry.", None)


def options(statement: str) -> dict[str, str]:
    """What a table of Flink is given in its WITH."""
    given = re.findall(r"^  '([\w.-]+)' = '((?:[^']|'')*)'", statement, re.MULTILINE)
    return {name: value.replace("''", "'") for name, value in given}


@pytest.mark.parametrize("name", ["FiredEvent", "LifecycleEvent"])
def test_each_field_of_a_schema_is_a_column(name: str) -> None:
    fields = schema(name)["fields"]
    columns = dict(columns_of(name))
    assert list(columns) == [each["name"] for each in fields]
    for each in fields:
        assert ("NOT NULL" in columns[each["name"]]) == (not isinstance(each["type"], list))


def test_flink_reads_committed_records_from_the_beginning() -> None:
    tables = list(flink(PLACE, ["demo"], ["shop"]))
    assert [re.findall(r"TABLE `(\w+)`", each)[0] for each in tables] == [
        *("belfry_fired", "belfry_envelopes", "belfry_lifecycle")
    ]
    for each in tables:
        said = options(each)
        assert said["properties.isolation.level"] == "read_committed"
        assert said["properties.bootstrap.servers"] == PLACE.brokers


def test_the_schema_that_flink_gets_is_belfrys_without_words() -> None:
    lifecycle = options(list(flink(PLACE, [], []))[-1])
    given = json.loads(lifecycle["value.avro-confluent.schema"])
    assert "doc" not in lifecycle["value.avro-confluent.schema"]
    names = [each["name"] for each in schema("LifecycleEvent")["fields"]]
    assert [each["name"] for each in given["fields"]] == names


def test_flink_reads_all_tenants_where_none_is_named() -> None:
    (fired,) = flink(WITHOUT_REGISTRY, [], [])
    pattern = options(fired)["topic-pattern"]
    assert re.fullmatch(pattern, "belfry.fired.demo")
    assert not re.fullmatch(pattern, "belfry.lifecycle")
    assert not re.fullmatch(pattern, "belfryXfiredXdemo")
    (named,) = flink(WITHOUT_REGISTRY, ["a", "b"], [])
    assert options(named)["topic"] == "belfry.fired.a;belfry.fired.b"


def test_the_tenant_is_what_follows_the_prefix() -> None:
    (fired,) = flink(Place("kafka:9092", "events.", None), ["demo"], [])
    start = re.findall(r"`tenant` AS SUBSTRING\(`topic` FROM (\d+)\)", fired)
    assert "events.fired.demo"[int(start[0]) - 1 :] == "demo"


def test_a_quote_stays_inside_its_text() -> None:
    (fired,) = flink(Place("o'brien:9092", "belfry.", None), ["demo"], [])
    assert "'o''brien:9092'" in fired


def test_ksqldb_has_a_stream_for_each_topic() -> None:
    said = list(ksqldb(PLACE, ["demo", "b"], ["shop"]))
    assert said[0] == "SET 'processing.guarantee' = 'exactly_once_v2';"
    assert [topic for each in said for topic in re.findall(r"KAFKA_TOPIC = '([^']+)'", each)] == [
        *("belfry.fired.demo", "belfry.fired.b", "belfry.fired.shop", "belfry.lifecycle")
    ]
    assert "NOT NULL" not in "".join(said)


def test_the_commands_of_the_page_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "sql.md").read_text("utf-8")
    typed = re.findall(r"^\$ belfry (.+?) > \S+$", page, re.MULTILINE)
    assert [each.split()[1] for each in typed] == ["flink", "ksqldb"]
    for each in typed:
        assert main(each.split()) == 0
        assert "belfry.fired.demo" in capsys.readouterr().out
    (fired,) = flink(WITHOUT_REGISTRY, ["demo"], [])
    named = re.findall(r"an event: (.+?) \|", page)[0]
    assert all(f"`{each}`" in fired for each in re.findall(r"`(\w+)`", named))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["flink", "--tenant", "no tenant"], "tenant"),
        (["flink", "--envelope", "shop"], "--schema-registry-url"),
        (["ksqldb"], "--tenant"),
        (["spark"], "spark"),
    ],
)
def test_what_cannot_be_a_table_is_refused(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", *words]) == 2
    assert named in capsys.readouterr().err


def test_statements_are_printed_and_can_be_read_by_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sql", "flink", "--tenant", "demo", "-o", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["statement"].startswith("CREATE TABLE")
