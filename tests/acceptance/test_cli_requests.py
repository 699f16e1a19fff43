"""`belfry schedule`: what is written to Kafka, and what is made of the verdicts."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from time import time
from typing import Any

import orjson
import pytest

from belfry.cli.entry import main
from belfry.devstack import Stack
from belfry.registry.client import Registry
from belfry.registry.naming import subject_of
from belfry.registry.subjects import publish_all
from belfry.schedules.identity import partition_of
from belfry.wire import catalogue, framing
from tests.unit.client.fake_worker import FakeWorker, settings_for


@pytest.fixture
def worker(
    kafka: str, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeWorker]:
    """A stand-in for a worker, and commands that talk to it."""
    settings = settings_for(kafka, unique("requests") + ".")
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", settings.cluster.topic_prefix)
    with FakeWorker(settings) as running:
        yield running


def create(*arguments: str) -> int:
    return main(["schedule", "create", "demo", "hello", *arguments])


def test_a_request_says_everything_that_was_given(worker: FakeWorker, tmp_path: Path) -> None:
    payload = bytes(range(256))
    (tmp_path / "payload").write_bytes(payload)
    arguments = [
        *("--in", "1h30m", "--payload-file", str(tmp_path / "payload")),
        *("--key", "k", "--group", "g", "--event-type", "t", "--reason", "because"),
        *("--header", "a=1", "--header", "a=2=3", "--header", "b="),
        *("--request-id", "r-1", "--expected-version", "7"),
    ]
    assert create(*arguments) == 0
    (seen,) = worker.seen
    expected = {
        "tenant": "demo",
        "schedule_id": "hello",
        "action": "UPSERT",
        "kind": "AFTER",
        "delay_ms": 5_400_000,
        "at": None,
        "payload": payload,
        "key": b"k",
        "group": "g",
        "event_type": "t",
        "reason": "because",
        "request_id": "r-1",
        "expected_version": 7,
    }
    assert seen.items() >= expected.items()
    assert seen["headers"] == [
        {"name": "a", "value": b"1"},
        {"name": "a", "value": b"2=3"},
        {"name": "b", "value": b""},
    ]


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (["--at", "2099-12-01T09:00:00Z"], {"kind": "AT", "at": 4_099_798_800_000}),
        (["--in", "5m"], {"kind": "AFTER", "delay_ms": 300_000}),
        (["--every", "30s"], {"kind": "EVERY", "interval_ms": 30_000}),
        (
            ["--cron", "0 9 * * MON", "--tz", "Europe/Paris"],
            {"kind": "CRON", "cron": "0 9 * * MON", "timezone": "Europe/Paris"},
        ),
    ],
)
def test_every_kind_is_passed_on(
    worker: FakeWorker, arguments: list[str], fields: dict[str, Any]
) -> None:
    create(*arguments)
    assert worker.seen[0].items() >= fields.items()


def test_without_payload_a_null_value_is_scheduled(worker: FakeWorker) -> None:
    assert create("--in", "5m") == 0
    assert create("--in", "5m", "--payload", "") == 0
    assert [seen["payload"] for seen in worker.seen] == [None, b""]


def test_requests_go_to_the_partition_of_their_tenant(worker: FakeWorker) -> None:
    for tenant in ("a", "b", "payments.eu", "c-1"):
        arguments = ["schedule", "create", tenant, "i", "--in", "1h", "--no-wait", "-o", "json"]
        done = _run(*arguments)
        place = orjson.loads(done.stdout)
        assert place["source_partition"] == partition_of(tenant.encode(), 2)
        assert place["outcome"] is None


def test_no_registry_means_single_objects(worker: FakeWorker) -> None:
    assert create("--in", "1h") == 0
    assert worker.frames == [framing.FrameKind.SINGLE_OBJECT]
    assert worker.records[0][2] == b"demo"


def test_a_registry_means_confluents_prefix(
    worker: FakeWorker, stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    url = ["--schema-registry-url", stack.schema_registry_url]
    assert create("--in", "1h", *url) == 1
    assert "Run `belfry schema register`" in capsys.readouterr().err
    registry = Registry(stack.schema_registry_url)
    publish_all(registry, worker.settings)
    found = registry.id_of(
        subject_of(worker.settings.topic("schedules"), "ScheduleRequest"), "ScheduleRequest"
    )
    registry.close()
    assert found is not None
    worker.learn(found, catalogue.schema("ScheduleRequest"))
    assert create("--in", "1h", *url) == 0
    assert worker.frames == [framing.FrameKind.PREFIX]
    value = worker.records[0][3]
    assert value is not None
    assert value.startswith(framing.prefix(found))


def test_the_verdict_is_printed(worker: FakeWorker, capsys: pytest.CaptureFixture[str]) -> None:
    before_ms = int(time() * 1000)
    assert create("--in", "5m", "--request-id", "r", "-o", "json") == 0
    verdict = orjson.loads(capsys.readouterr().out)
    assert verdict["outcome"] == "ACCEPTED"
    assert verdict["request_id"] == "r"
    assert verdict["version"] == 1
    assert before_ms <= worker.records[0][1]
    assert create("--in", "5m") == 0
    assert capsys.readouterr().out.startswith("UPDATED demo/hello, version 1, due 2")


@pytest.mark.parametrize("output", ["text", "jsonl"])
def test_each_no_has_its_exit_code(
    worker: FakeWorker, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.fire("demo", "fired", b"")
    asked = [
        (["cancel", "demo", "nothing"], 3, "NOT_FOUND"),
        (["cancel", "demo", "fired"], 4, "TOO_LATE"),
        (["create", "demo", "fired", "--in", "5m", "--create-only"], 4, "CONFLICT"),
        (["create", "demo", "x", "--every", "5m"], 1, "REJECTED"),
    ]
    for arguments, code, outcome in asked:
        assert main(["schedule", *arguments, "-o", output]) == code
        shown = capsys.readouterr()
        assert shown.err.startswith(f"belfry: {outcome} ")
        assert "Traceback" not in shown.err
        found = orjson.loads(shown.out)["outcome"] if output == "jsonl" else None
        assert found == (outcome if output == "jsonl" else None)


def test_pause_resume_trigger_cancel(
    worker: FakeWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("--in", "1h") == 0
    for action in ("pause", "resume", "trigger", "cancel"):
        assert main(["schedule", action, "demo", "hello", "--reason", "a test"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "ACCEPTED",
        "PAUSED",
        "RESUMED",
        "TRIGGERED",
        "CANCELLED",
    ]
    assert [seen["reason"] for seen in worker.seen] == [None, *["a test"] * 4]


def test_ack_names_a_fire(worker: FakeWorker, capsys: pytest.CaptureFixture[str]) -> None:
    assert create("--in", "1h") == 0
    assert main(["schedule", "ack", "demo", "hello", "0f" * 16]) == 0
    assert main(["schedule", "ack", "demo", "hello", "the last"]) == 1
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()] == ["ACCEPTED", "UPDATED"]
    assert shown.err.startswith("belfry: REJECTED (bad_fire_id) demo/hello: ")
    assert [seen["fire_id"] for seen in worker.seen] == [None, "0f" * 16]


def test_without_a_verdict_the_request_is_in_the_log(
    worker: FakeWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.silent = True
    assert create("--in", "1h", "--request-id", "r-7", "--timeout", "0.5") == 1
    err = capsys.readouterr().err
    assert "No verdict on demo/hello within 0.5 s" in err
    assert "asking again with request id r-7 is safe" in err
    assert create("--in", "1h", "--no-wait") == 0
    assert capsys.readouterr().out.startswith("SENT demo/hello")


def test_a_request_that_is_too_large_is_rejected(
    worker: FakeWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large").write_bytes(bytes(2_000_000))
    assert create("--in", "1h", "--payload-file", str(tmp_path / "large")) == 1
    assert "REJECTED (request_too_large)" in capsys.readouterr().err
    assert worker.seen == []


@pytest.mark.parametrize("option", ["--reason", "--header"])
def test_bytes_that_are_no_text_are_rejected_or_passed_on(
    worker: FakeWorker, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("--in", "1h", option, "\udcff=x") == 1
    assert "REJECTED (bad_fields)" in capsys.readouterr().err
    assert create("--in", "1h", "--payload", "\udcff", "--key", "\udcfe") == 0
    assert worker.seen[0]["payload"] == b"\xff"
    assert worker.seen[0]["key"] == b"\xfe"


def test_a_missing_topic_is_told(
    kafka: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Others have topics of the usual prefix on this broker.
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", f"without-{uuid.uuid4().hex[:8]}.")
    for wait in ([], ["--no-wait"]):
        assert create("--in", "1h", "--bootstrap-servers", kafka, *wait) == 1
        assert "run `belfry topics create`" in capsys.readouterr().err


def test_the_payload_may_come_from_the_standard_input(worker: FakeWorker) -> None:
    arguments = ["schedule", "create", "demo", "hello", "--in", "1h", "--payload-file", "-"]
    done = _run(*arguments, stdin=b"\x00\xffpiped")
    assert done.returncode == 0, done.stderr
    assert worker.seen[0]["payload"] == b"\x00\xffpiped"


def _run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "belfry.cli", *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ,
    )
