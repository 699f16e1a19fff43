"""Kafka Connect's sinks and sources, as their files in ``compose/connect/`` stand.

One Connect worker for the whole file: it is killed in the middle of its work once, and what it had
written and not yet committed comes a second time.

    belfry.fired.book-*   FiredEvent, Avro        ─► PostgreSQL, one row for each fire id
    belfry.fired.own-*    a user's own Avro       ─► PostgreSQL, a table with the record's columns
    belfry.fired.text-*   bytes                   ─► a file, one line for each event
    a file of lines ─► belfry.schedules, with headers made by transforms
    PostgreSQL, rows of an outbox ─► belfry.schedules
"""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from belfry.devstack import Connect, Stack
from belfry.devstack.postgres import Postgres, programs
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.architecture.tree import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(450),
    pytest.mark.skipif(
        programs() is None, reason="PostgreSQL is not installed (Debian package postgresql)"
    ),
]

FILES: Final = ROOT / "compose" / "connect"
EVENTS: Final = 2_000
SPREAD_MS: Final = 12_000
WAIT_S: Final = 90.0
PAYMENT: Final = json.dumps(
    {
        "type": "record",
        "name": "PaymentOverdue",
        "namespace": "com.example",
        "fields": [
            {"name": "order_id", "type": "string"},
            {"name": "amount_cents", "type": "long"},
            {"name": "currency", "type": ["null", "string"], "default": None},
        ],
    }
)


@dataclass(frozen=True)
class Plant:
    """Two belfrys, a Connect worker and a database; one belfry wraps events, one passes bytes."""

    wrapping: Site
    passing: Site
    connect: Connect
    database: Postgres
    home: Path

    def count(self, table: str, what: str = "*") -> int:
        """Rows of a table; 0 while it does not exist."""
        exists = self.database.query(f"SELECT to_regclass('{table}') IS NOT NULL")
        if exists == [["f"]]:
            return 0
        return int(self.database.query(f"SELECT count({what}) FROM {table}")[0][0])

    def lines(self) -> list[str]:
        """What the file sink has written."""
        file = self.home / "events.txt"
        return file.read_text("utf-8").splitlines() if file.exists() else []


@pytest.fixture(scope="module")
def plant(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """Everything, running; the sinks are there before any tenant is."""
    home = tmp_path_factory.mktemp("connect")
    stem = f"connect-{uuid.uuid4().hex[:8]}"
    registry = {
        "SCHEMA_REGISTRY_URL": stack.schema_registry_url,
        "REGISTRY_AUTO_REGISTER": "true",
        "REGISTRY__TIMEOUT": "20",
        "CLUSTER__PARTITIONS": "2",
    }
    kafka = stack.bootstrap_servers
    with (
        Postgres() as database,
        Site(kafka, f"{stem}-w", home / "w", DEFAULT_DELIVERY="ENVELOPE", **registry) as wrapping,
        Site(kafka, f"{stem}-p", home / "p", **registry) as passing,
    ):
        workers = [site.worker().start() for site in (wrapping, passing)]
        environment = {
            "CONNECT_BOOTSTRAP_SERVERS": kafka,
            "CONNECT_REGISTRY_URL": f"http://127.0.0.1:{stack.registry.port}/apis/registry/v2",
            # Positions are not committed before the worker is killed: all is written twice.
            "CONNECT_FLUSH_MS": "60000",
            "CONNECT_JDBC_URL": database.jdbc_url,
            "CONNECT_JDBC_USER": "belfry",
            "CONNECT_JDBC_PASSWORD": database.password,
            "CONNECT_TOPICS_ENVELOPE": rf"{stem}-w\.fired\.book-.*",
            "CONNECT_TOPICS_RECORDS": rf"{stem}-p\.fired\.own-.*",
            "CONNECT_TOPICS_TEXT": rf"{stem}-p\.fired\.text-.*",
            "CONNECT_OUTPUT_FILE": str(home / "events.txt"),
            "CONNECT_INPUT_FILE": str(home / "lines.txt"),
            "CONNECT_TOPIC_SCHEDULES": passing.topic("schedules"),
            "CONNECT_SOURCE_TENANT": "text-lines",
            "CONNECT_OUTBOX_HOST": "127.0.0.1",
            "CONNECT_OUTBOX_PORT": str(database.port),
            "CONNECT_OUTBOX_DATABASE": "postgres",
            "CONNECT_OUTBOX_USER": "belfry",
            "CONNECT_OUTBOX_PASSWORD": database.password,
        }
        connect = Connect(home / "connect", FILES / "worker.properties", environment)
        try:
            connect.start().wait_ready(240)
            for worker in workers:
                worker.wait_ready(240)
            for sink in sorted(FILES.glob("sinks/*.json")):
                connect.put_file(sink.stem, sink)
            yield Plant(wrapping, passing, connect, database, home)
        finally:
            connect.kill()


def committed(kafka: str, group: str, topic: str) -> int:
    """How many records of a topic a group has committed."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": group})
    places = [
        TopicPartition(topic, p) for p in consumer.list_topics(topic).topics[topic].partitions
    ]
    found = consumer.committed(places, timeout=10)
    consumer.close()
    return sum(max(place.offset, 0) for place in found)


def test_a_sink_that_is_killed_midway_keeps_one_row_for_each_fire(plant: Plant) -> None:
    # The sink looks for new topics every few seconds; what counts begins when it has this one.
    plant.wrapping.ask("book-1", "first", at=now_ms(), payload=b"first")
    wait_for("the first row", lambda: plant.count("fired_events"), WAIT_S)
    start = now_ms() + 500
    for number in range(EVENTS - 1):
        at = start + SPREAD_MS * number // EVENTS
        value = request("book-1", f"s{number}", at=at, payload=b"%d" % number)
        plant.wrapping.producer.produce(plant.wrapping.topic("schedules"), value, b"book-1")
    assert plant.wrapping.producer.flush(WAIT_S) == 0
    wait_for("some rows", lambda: plant.count("fired_events") >= EVENTS // 10, WAIT_S)
    plant.connect.kill()
    written = plant.count("fired_events")
    topic = plant.wrapping.topic("fired.book-1")
    group = "connect-fired-events-to-postgresql"
    assert committed(plant.wrapping.bootstrap, group, topic) < written < EVENTS
    # A tenant that nobody knew when the sinks were made.
    plant.wrapping.ask("book-2", "late", at=now_ms(), payload=b"new tenant")
    plant.connect.start().wait_ready(240)
    wait_for("all rows", lambda: plant.count("fired_events") >= EVENTS + 1, WAIT_S)
    assert len(plant.wrapping.wait_fired("book-1", EVENTS)) == EVENTS
    assert plant.count("fired_events") == EVENTS + 1
    assert plant.count("fired_events", "DISTINCT fire_id") == EVENTS + 1
    rows = plant.database.query(
        "SELECT tenant, schedule_id, payload FROM fired_events WHERE tenant = 'book-2'"
    )
    assert rows == [["book-2", "late", "\\x" + b"new tenant".hex()]]


def test_a_users_own_record_has_a_table_with_its_own_columns(plant: Plant, stack: Stack) -> None:
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as registry:
        topic = plant.passing.topic("fired.own-shop")
        serialize = AvroSerializer(registry, PAYMENT, conf={"subject.name.strategy.type": "TOPIC"})
        context = SerializationContext(topic, MessageField.VALUE)
        for number in range(3):
            record = {"order_id": f"o{number}", "amount_cents": 100 * number, "currency": "EUR"}
            payload = serialize(record, context)
            plant.passing.ask("own-shop", f"o{number}", at=now_ms(), payload=payload)
    wait_for("three rows", lambda: plant.count("payments_overdue") >= 3, WAIT_S)
    rows = plant.database.query(
        "SELECT order_id, amount_cents, currency FROM payments_overdue ORDER BY order_id"
    )
    assert rows == [["o0", "0", "EUR"], ["o1", "100", "EUR"], ["o2", "200", "EUR"]]


def test_a_file_sink_and_a_file_source(plant: Plant) -> None:
    lines = [f"reminder/{number}" for number in range(20)]
    (plant.home / "lines.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    plant.connect.put_file("lines-to-schedules", FILES / "sources" / "lines-to-schedules.json")
    wait_for("all lines", lambda: set(plant.lines()) >= set(lines), WAIT_S)
    fired = plant.passing.fired("text-lines")
    assert sorted(record.value or b"" for record in fired) == sorted(map(str.encode, lines))
    assert all(record.header("belfry-schedule-id") == record.value for record in fired)
    assert not plant.passing.rejected()


def test_rows_that_were_committed_become_schedules_and_those_rolled_back_do_not(
    plant: Plant,
) -> None:
    page = (ROOT / "docs" / "how-to" / "connect.md").read_text("utf-8")
    table, order = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    ask, name = plant.database.query, plant.passing
    ask("CREATE TABLE orders (id bigint PRIMARY KEY, state text)")
    ask(table)
    # What was committed before the connector is there counts as well.
    ask(order)
    source = "outbox-to-schedules"
    plant.connect.put_file(source, FILES / "sources" / f"{source}.json")
    assert name.wait_fired("shop", 1, WAIT_S)[0].value == b"order 17 was not paid"
    insert = "INSERT INTO belfry_outbox (tenant, schedule_id, due_at, payload)"
    for first, end in ((0, "COMMIT"), (100, "ROLLBACK"), (200, "COMMIT")):
        ask(
            f"BEGIN; {insert} SELECT 'shop', 'o' || n, now() + interval '2 seconds', n::text::bytea"
            f" FROM generate_series({first}, {first + 49}) AS n;"
            f" DELETE FROM belfry_outbox WHERE schedule_id = 'o{first}'; {end}"
        )
        if first == 0:
            plant.connect.kill()
    plant.connect.start().wait_ready(240)
    ask(f"{insert} VALUES ('shop', 'late', now() + interval '1 hour', 'never')")
    ask("INSERT INTO belfry_outbox (tenant, schedule_id, action) VALUES ('shop', 'late', 'CANCEL')")
    wanted = {b"%d" % n for n in (*range(50), *range(200, 250))}
    fired = [record.value or b"" for record in name.wait_fired("shop", 101, WAIT_S)]
    assert sorted(fired) == sorted([*wanted, b"order 17 was not paid"])
    cancel = ask("SELECT id FROM belfry_outbox WHERE action = 'CANCEL'")[0][0]
    assert name.outcome(cancel)["outcome"] == "CANCELLED"
    assert not name.rejected()


def test_the_pages_commands_work(plant: Plant) -> None:
    page = (ROOT / "docs" / "how-to" / "connect.md").read_text("utf-8")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    typed = [line for line in blocks.replace("\\\n", " ").splitlines() if "localhost:8083" in line]
    assert len(typed) == 6
    for line in typed:
        command = line.replace("http://localhost:8083", plant.connect.url)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_every_connector_file_runs(plant: Plant) -> None:
    names = {path.stem for path in FILES.glob("*/*.json")}
    assert set(plant.connect.connectors()) == names
    for name in names:
        wait_for(name, lambda name=name: plant.connect.runs(name), WAIT_S)  # type: ignore[misc]
