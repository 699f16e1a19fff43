"""Whoever lacks one right is told which: who may not do what with which resource, and the line that
grants it.

Each documented right is taken away and missed; then the line that was printed is carried out, which
has to give it back.  `belfry acls` prints the same rights.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from time import sleep
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
)
from structlog.testing import capture_logs

from belfry.cli.doctor import checks as checks_of
from belfry.cli.entry import main
from belfry.cli.session import Session
from belfry.client.writing import RequestWriter
from belfry.kafka import topics
from belfry.kafka.lacking import Lacking, missing_rights
from belfry.kafka.rights import Options, Right, tenant_rights, worker_rights
from belfry.process.cluster_start import find
from belfry.process.data_folder import RefusedToStart
from belfry.settings import Settings
from tests.acceptance.harness.guarded import KINDS, OPERATIONS, Guarded, guarded_broker, known
from tests.acceptance.harness.site import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

WORKER, TENANT = "each", "payments"


class One(NamedTuple):
    """One operation of one right: what a single rule of the authorizer allows."""

    user: str
    operation: str
    kind: str
    name: str
    prefixed: bool

    def __str__(self) -> str:
        return f"{self.operation}-{self.kind}-{self.name}"

    @property
    def binding(self) -> AclBinding:
        pattern = ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL
        return AclBinding(
            KINDS[self.kind], self.name, pattern, f"User:{self.user}", "*",
            OPERATIONS[self.operation], AclPermissionType.ALLOW,
        )  # fmt: skip


def each_of(user: str, rights: list[Right]) -> list[One]:
    return [
        One(user, operation, right.kind, right.name, right.prefixed)
        for right in rights
        for operation in right.operations
    ]


OF_WORKER: Final = each_of(WORKER, worker_rights("each.", WORKER))
OF_TENANT: Final = each_of(TENANT, tenant_rights("each.", TENANT))
# Commands read no dead letters: any consumer does.
LETTERS: Final = f"each.dead-letters.{TENANT}"
# Who may read or write a topic may describe it as well, by Kafka's own rule.
IMPLIED: Final = {each for each in (*OF_WORKER, *OF_TENANT) if each.operation == "Describe"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A broker that lets nobody do anything unasked; two users have what is documented."""
    strict = {
        "allow_everyone_if_no_acl_found": "false",
        "super_users": "User:admin;User:ANONYMOUS",
    }
    with guarded_broker(tmp_path_factory.mktemp("each"), **strict) as found:
        known(found, WORKER, TENANT)
        admin = found.admin
        give(admin, *OF_WORKER, *OF_TENANT)
        topics.create(admin, settings_of(found.open, {}))
        own = [f"each.{name}.{TENANT}" for name in ("schedules", "fired", "dead-letters")]
        for answer in admin.create_topics([NewTopic(each, 1, 1) for each in own]).values():
            answer.result(20)
        producer = Producer({"bootstrap.servers": found.open})
        for topic in own[1:]:
            producer.produce(topic, b"fired")
        assert producer.flush(20) == 0
        yield found


def settings_of(servers: str, properties: dict[str, str]) -> Settings:
    kafka = {name.replace(".", "_"): value for name, value in properties.items()}
    cluster: Any = {"topic_prefix": "each.", "app_id": WORKER, "partitions": 1}
    return Settings(bootstrap_servers=servers, cluster=cluster, kafka=kafka, create_topics=False)


@pytest.fixture(scope="module")
def settings(guarded: Guarded) -> Settings:
    """Those of a worker that has to show who it is."""
    return settings_of(guarded.secure, guarded.properties(WORKER))


@pytest.fixture(scope="module")
def asking(settings: Settings) -> AdminClient:
    return AdminClient(settings.kafka_properties())


def give(admin: AdminClient, *rights: One) -> None:
    for answer in admin.create_acls([each.binding for each in rights]).values():
        answer.result(20)


@contextmanager
def without(guarded: Guarded, *rights: One) -> Iterator[None]:
    """Within it these rights are gone, and then all are there again."""
    admin = guarded.admin
    for each in rights:
        rule = each.binding
        gone = AclBindingFilter(
            rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host,
            rule.operation, rule.permission_type,
        )  # fmt: skip
        for answer in admin.delete_acls([gone]).values():
            assert len(answer.result(20)) == 1
    try:
        yield
    finally:
        give(admin, *rights)


def granted(line: str) -> set[One]:
    """What a printed line grants; it has to be one that Kafka's own tool takes."""
    words = shlex.split(line)
    assert words[0] == "kafka-acls.sh"
    assert "--add" in words
    given = dict(pairwise(words))
    kind = next(each for each in KINDS if f"--{each}" in words)
    user = given["--allow-principal"].removeprefix("User:")
    prefixed = given.get("--resource-pattern-type") == "prefixed"
    operations = re.findall(r"--operation (\w+)", line)
    return {One(user, each, kind, given[f"--{kind}"], prefixed) for each in operations}


def told(asking: AdminClient, settings: Settings) -> list[Lacking]:
    return list(missing_rights(asking, settings))


@pytest.mark.parametrize("right", OF_WORKER, ids=str)
def test_a_worker_that_lacks_a_right_says_at_its_start_which(
    guarded: Guarded, settings: Settings, asking: AdminClient, right: One
) -> None:
    wait_for("all rights", lambda: not told(asking, settings))
    with without(guarded, right):
        if right in IMPLIED:
            assert not told(asking, settings)
            return
        (found,) = wait_for("a right to be missing", lambda: told(asking, settings))
        with capture_logs() as logs:
            find(settings)
        missing = [line for line in logs if line["event"] == "a right is missing"]
        assert [(each["problem"], each["cure"]) for each in missing] == [found[:2]]
        kind = right.kind.replace("-", " ")
        assert found.problem.startswith(f"User:{WORKER} may not {right.operation} {kind} ")
        assert right.name in found.problem
        assert granted(found.cure) == {right}
        give(guarded.admin, *granted(found.cure))
        wait_for("the right", lambda: not told(asking, settings))


def test_topics_that_a_worker_may_not_see_are_not_called_missing(
    guarded: Guarded, settings: Settings, asking: AdminClient
) -> None:
    rights = [each for each in OF_WORKER if each.kind == "topic"]
    with without(guarded, *rights):
        (found,) = wait_for("rights to be missing", lambda: told(asking, settings))
        with pytest.raises(RefusedToStart) as refused:
            find(settings)
        assert found.problem in str(refused.value)
        assert found.cure in str(refused.value)
        assert granted(found.cure) == {*rights}


CREATE: Final = each_of(WORKER, worker_rights("each.", WORKER, Options(creates_topics=True)))


def test_who_may_not_create_topics_is_told_so(
    settings: Settings,
    asking: AdminClient,
    guarded: Guarded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that makes what is missing, and `belfry topics create`."""
    wait_for("all rights", lambda: not told(asking, settings))
    more = {"create_topics": True, "metering_interval_ms": 3_600_000}
    with pytest.raises(RefusedToStart) as refused:
        find(settings.model_copy(update=more))
    line = re.search(r"Grant it: (kafka-acls\.sh .*?)\. Or let", str(refused.value))
    assert line is not None
    (lacked,) = granted(line[1])
    assert lacked in {*CREATE} - {*OF_WORKER}
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", "each.")
    monkeypatch.setenv("BELFRY_METERING_INTERVAL_MS", "3600000")
    code, said = run(guarded, capsys, "topics", "create", user=WORKER)
    assert code == 1
    assert f"User:{WORKER} may not Create topic each.…" in said
    assert line[1] in said


def test_the_doctor_names_the_right_and_calls_no_topic_missing(
    guarded: Guarded, settings: Settings, asking: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = [each for each in OF_WORKER if each.kind == "topic"]
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", "each.")
    session = Session({"bootstrap_servers": guarded.secure, "properties": shown(guarded, WORKER)})
    monkeypatch.setenv("BELFRY_CLUSTER__APP_ID", WORKER)
    with without(guarded, *rights):
        (found,) = wait_for("rights to be missing", lambda: told(asking, settings))
        checks = list(islice(checks_of(session), 5))
    by_name = {each.check: each for each in checks}
    assert found.problem in by_name["rights"].detail
    assert by_name["rights"].to_do == found.cure
    assert not [each for each in checks if "Missing" in each.detail]


def shown(guarded: Guarded, user: str) -> list[str]:
    """What a user shows, as options -X take it."""
    return [f"{name}={value}" for name, value in guarded.properties(user).items()]


def run(
    guarded: Guarded, capsys: pytest.CaptureFixture[str], *words: str, user: str = TENANT
) -> tuple[int, str]:
    """A command of this user: its exit code and what it says of errors."""
    options = [word for each in shown(guarded, user) for word in ("-X", each)]
    code = main([*words, "--bootstrap-servers", guarded.secure, *options])
    return code, capsys.readouterr().err


COMMANDS: Final = {
    "schedule": ("schedule", "create", TENANT, "one", "--in", "1h", "--no-wait"),
    "tail": ("events", "tail", TENANT, "--from-beginning", "--max", "1", "--timeout", "5"),
    "tail as a group": (
        *("events", "tail", TENANT, "--from-beginning", "--max", "1", "--timeout", "10"),
        *("--group", f"{TENANT}.tail"),
    ),
}


@pytest.mark.usefixtures("tenants_settings")
def test_a_producer_that_failed_before_it_was_used_is_told_why(
    guarded: Guarded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's client asks for an id of its own accord, and may be denied it before a record comes.
    Then it says of each record only that it has failed.
    """
    opened = RequestWriter._open

    def open_and_wait(writer: RequestWriter, names: set[str]) -> Any:
        found = opened(writer, names)
        sleep(2.0)
        return found

    monkeypatch.setattr(RequestWriter, "_open", open_and_wait)
    (right,) = (each for each in OF_TENANT if str(each) == "Write-topic-each.schedules.payments")
    with without(guarded, right):
        code, said = run(guarded, capsys, *COMMANDS["schedule"])
    assert code == 1
    assert f"User:{TENANT} may not Write topic {right.name}. " in said


@pytest.fixture
def tenants_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", "each.")
    monkeypatch.setenv("BELFRY_OWN_TOPICS", "true")


@pytest.mark.usefixtures("tenants_settings")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_tenant_with_its_rights_schedules_and_reads(
    guarded: Guarded, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(guarded, capsys, *COMMANDS[command]) == (0, "")


def read_letter(guarded: Guarded) -> bytes | int | None:
    """What a tenant's own program reads of its dead letters: a value, or the code of an error."""
    consumer = Consumer(
        {
            "bootstrap.servers": guarded.secure,
            "group.id": f"{TENANT}.letters",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **guarded.properties(TENANT),
        }
    )
    consumer.subscribe([LETTERS])
    try:
        message: Any = wait_for("a message or an error", lambda: consumer.poll(1.0))
        error = message.error()
        found: bytes | int | None = message.value() if error is None else error.code()
        return found
    finally:
        consumer.close()


def test_a_tenant_reads_its_dead_letters_and_nobody_elses(guarded: Guarded) -> None:
    assert read_letter(guarded) == b"fired"
    read, describe = (each for each in OF_TENANT if each.name == LETTERS)
    with without(guarded, describe):
        assert read_letter(guarded) == b"fired"
    with without(guarded, read, describe):
        assert read_letter(guarded) == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.usefixtures("tenants_settings")
@pytest.mark.parametrize("right", [each for each in OF_TENANT if each.name != LETTERS], ids=str)
def test_a_tenant_that_lacks_a_right_is_told_which(
    guarded: Guarded, capsys: pytest.CaptureFixture[str], right: One
) -> None:
    name = "tail as a group" if right.kind == "group" else "tail"
    command = COMMANDS["schedule" if "schedules" in right.name else name]
    with without(guarded, right):
        if right in IMPLIED:
            assert run(guarded, capsys, *command) == (0, "")
            return
        code, said = run(guarded, capsys, *command)
        assert code == 1, said
        # A group is named as it was asked for; the documented right is all that begin so.
        resource = f"{TENANT}.tail" if right.kind == "group" else right.name
        assert f"User:{TENANT} may not {right.operation} {right.kind} {resource}. " in said
        (line,) = re.findall(r"Grant it: (.*)$", said, re.MULTILINE)
        assert granted(line) == {right._replace(name=resource, prefixed=False)}
