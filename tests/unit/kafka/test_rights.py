"""Rights as commands, as a KafkaUser and as a table; the documentation has the same ones."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from belfry.cli.failures import WrongUse
from belfry.cli.program import program
from belfry.kafka.rights import (
    CLUSTER,
    Options,
    commands,
    sink_rights,
    strimzi,
    table,
    tenant_rights,
    worker_rights,
)
from tests.architecture.tree import ROOT

WORKER = worker_rights("belfry.", "belfry")


def run(*words: str) -> str:
    """What `belfry acls` prints."""
    answer = CliRunner().invoke(program(), ["acls", *words])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_the_main_job_needs_nothing_on_the_cluster_and_creates_nothing() -> None:
    assert all(each.kind != CLUSTER for each in WORKER)
    operations = {name for each in WORKER for name in each.operations}
    assert operations == {"Read", "Write", "Describe", "DescribeConfigs"}


def test_another_belfry_beside_it_is_out_of_reach() -> None:
    found = worker_rights("bells.", "bells")
    reached = {each.name for each in found if each.prefixed}
    assert reached == {"bells."}


def test_further_work_needs_further_rights() -> None:
    options = Options(True, True, ("mail", "belfry.reminders"))
    more = worker_rights("belfry.", "belfry", options)
    assert "Create" in more[0].operations
    names = [each.name for each in more]
    assert "mail" in names
    # The prefix has it already.
    assert "belfry.reminders" not in names
    assert [each.operations for each in more if each.kind == CLUSTER] == [("Describe",)]


def test_a_command_for_each_right() -> None:
    lines = list(commands(WORKER, "one", "kafka:9092"))
    assert lines[0] == (
        "kafka-acls.sh --bootstrap-server kafka:9092 --add --allow-principal User:one"
        " --operation Read --operation Write --operation Describe --operation DescribeConfigs"
        " --topic belfry. --resource-pattern-type prefixed"
    )
    assert lines[1].endswith("--operation Read --group belfry")
    (*_, last) = commands(worker_rights("a", "a", Options(False, True)), "u", "k:1")
    assert last.endswith("--transactional-id '*'")


def test_a_kafka_user_has_the_same() -> None:
    acls = strimzi(worker_rights("belfry.", "belfry", Options(False, True)))
    kinds = [each["resource"]["type"] for each in acls]
    assert kinds == ["topic", *["group"] * 3, "transactionalId", "cluster", "transactionalId"]
    assert acls[0]["resource"]["patternType"] == "prefix"
    assert "name" not in acls[5]["resource"]


def test_a_tenant_reads_its_events_and_writes_its_requests() -> None:
    lines = run("tenant", "payments", "--user", "pay").splitlines()
    assert all("User:pay " in each and "payments" in each for each in lines)
    assert [each.rpartition(" --")[2] for each in lines] == [
        "topic belfry.schedules.payments",
        "topic belfry.fired.payments",
        "topic belfry.dead-letters.payments",
        "resource-pattern-type prefixed",
    ]
    assert ["Write" in each for each in lines] == [True, False, False, False]


def test_a_sink_reads_in_the_group_that_connect_gives() -> None:
    lines = run("sink", "archive", "--tenant", "a", "--tenant", "b").splitlines()
    assert [each.rpartition(" ")[2] for each in lines] == [
        "belfry.fired.a",
        "belfry.fired.b",
        "connect-archive",
    ]


def test_the_command_prints_a_whole_kafka_user() -> None:
    whole = json.loads(run("worker", "--as", "strimzi", "--kafka", "main"))
    assert whole["metadata"] == {"name": "belfry", "labels": {"strimzi.io/cluster": "main"}}
    assert whole["spec"]["authorization"]["acls"] == strimzi(WORKER)


def test_a_tenant_that_can_be_none_is_refused() -> None:
    answer = CliRunner().invoke(program(), ["acls", "tenant", "a b"])
    assert isinstance(answer.exception, WrongUse)
    assert "'a b' is not allowed" in str(answer.exception)


def test_the_page_has_the_table_of_the_code() -> None:
    groups = (
        ("workers", WORKER),
        ("tenant `payments`", tenant_rights("belfry.", "payments")),
        ("sink `archive`", sink_rights("belfry.", "archive", ["payments"])),
    )
    made = table(groups)
    page = (ROOT / "docs" / "tenants.md").read_text("utf-8")
    assert f"\n{made}\n\n" in page, f"Put this into docs/tenants.md:\n{made}"
