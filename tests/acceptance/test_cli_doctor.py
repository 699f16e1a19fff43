"""`belfry doctor` finds what is wrong, goes on where something fails, and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import orjson
import pytest
from confluent_kafka.admin import AdminClient

from belfry.cli.entry import main
from belfry.devstack import Stack

NOWHERE = "127.0.0.1:1"
UNREADY = {
    "/healthz/ready": (
        503,
        '{"ready":false,"problems":["partitions 0, 1 recover"],"partitions":[]}',
    ),
    "/metrics": (200, "# HELP belfry_clock_skew_seconds x\nbelfry_clock_skew_seconds 1.5\n"),
}
HEALTHY = {
    "/healthz/ready": (200, '{"ready":true}'),
    "/metrics": (200, "belfry_clock_skew_seconds -0.002\n"),
}


@contextmanager
def worker_with(pages: dict[str, tuple[int, str]]) -> Iterator[str]:
    """The address of something that answers like a worker."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = pages[self.path]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def checked(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the last line of each check."""
    code = main(["doctor", "-o", "jsonl", *arguments])
    lines = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, {each["check"]: each for each in lines}


def test_every_check_is_made_though_the_first_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with worker_with(UNREADY) as url:
        code, found = checked(capsys, "--bootstrap-servers", NOWHERE, "--http-url", url)
    assert code == 1
    assert {name: each["status"] for name, each in found.items()} == {
        "kafka": "problem",
        "topics": "skipped",
        "registry": "skipped",
        "worker": "problem",
        "clock": "problem",
        "workers": "skipped",
        "key groups": "skipped",
        "tenants": "skipped",
        "quotas": "skipped",
    }
    assert "Connection refused" in found["kafka"]["detail"]
    assert "partitions 0, 1 recover" in found["worker"]["detail"]
    assert "1500 ms" in found["clock"]["detail"]


def test_from_nothing_to_healthy(
    stack: Stack,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", unique("doctor") + ".")
    monkeypatch.setenv("BELFRY_CLUSTER__APP_ID", unique("doctor"))
    where = ["--bootstrap-servers", stack.bootstrap_servers]
    where += ["--schema-registry-url", stack.schema_registry_url]

    code, found = checked(capsys, *where, "--http-url", f"http://{NOWHERE}")
    assert code == 1
    assert found["kafka"]["status"] == "ok"
    assert found["topics"]["to_do"] == "belfry topics create"
    assert "belfry schema register" in found["registry"]["detail"]
    assert found["worker"]["status"] == "problem"

    assert main(["topics", "create", *where]) == 0
    assert main(["schema", "register", *where]) == 0
    capsys.readouterr()
    with worker_with(HEALTHY) as url:
        code, found = checked(capsys, *where, "--http-url", url)
    # No worker has owned a partition yet.
    assert found.pop("group")["status"] == "skipped"
    assert found.pop("settings")["status"] == "skipped"
    assert found.pop("signatures")["status"] == "skipped"
    assert found.pop("key groups")["status"] == "skipped"
    assert found.pop("tenants")["status"] == "skipped"
    assert found.pop("quotas")["status"] == "skipped"
    assert found.pop("workers")["status"] == "skipped"
    assert {each["status"] for each in found.values()} == {"ok"}, found
    assert code == 0


def test_nothing_is_written(
    kafka: str,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prefix = unique("untouched") + "."
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", prefix)
    checked(capsys, "--bootstrap-servers", kafka)
    topics = AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=10).topics
    assert not [name for name in topics if name.startswith(prefix)]
