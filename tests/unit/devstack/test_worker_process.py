"""The worker of `belfry dev`: what it is told, and how its ends are noticed.

A stand-in for ``belfry.cli`` takes the worker's place: it writes down what it was told and answers
the question whether it is ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from belfry.devstack import (
    Apicurio,
    DevStackError,
    Kafka,
    Stack,
    StartCancelledError,
    free_port,
)
from belfry.devstack.stack import Worker

READY = """
import http.server, json, os, pathlib, sys
told = {key: value for key, value in os.environ.items() if key.startswith("BELFRY_")}
place = pathlib.Path(told["BELFRY_DATA_DIR"])
place.mkdir(parents=True)
(place / "told.json").write_text(json.dumps([sys.argv[1:], told]))

class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz/ready" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.HTTPServer(("127.0.0.1", int(told["BELFRY_HTTP_PORT"])), Ready).serve_forever()
"""
HANGS = "import time\ntime.sleep(60)\n"
FAILS = "raise SystemExit(3)\n"


@contextmanager
def worker(home: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Iterator[Worker]:
    package = home / "stand-in" / "belfry" / "cli"
    package.mkdir(parents=True)
    for name, content in (("../__init__", ""), ("__init__", ""), ("__main__", program)):
        (package / f"{name}.py").write_text(content)
    monkeypatch.setenv("PYTHONPATH", str(home / "stand-in"))
    monkeypatch.setenv("BELFRY_LOG_FORMAT", "json")
    stack = Stack(Kafka(home, 9092), Apicurio(home, 8081))
    running = Worker(stack, home / "state", free_port())
    try:
        yield running
    finally:
        running.stop()


def never() -> bool:
    return False


def test_it_is_told_where_everything_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(tmp_path, monkeypatch, READY) as running:
        running.wait_ready(20, never)
        arguments, told = json.loads((tmp_path / "state" / "told.json").read_text())
    assert arguments == ["worker"]
    assert (
        told.items()
        >= {
            "BELFRY_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
            "BELFRY_SCHEMA_REGISTRY_URL": "http://127.0.0.1:8081/apis/ccompat/v7",
            "BELFRY_REGISTRY_AUTO_REGISTER": "true",
            "BELFRY_DATA_DIR": str(tmp_path / "state"),
            "BELFRY_HTTP_PORT": running.http_url.rpartition(":")[2],
            "BELFRY_LOG_FORMAT": "json",
        }.items()
    )


def test_its_death_while_starting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        worker(tmp_path, monkeypatch, FAILS) as running,
        pytest.raises(DevStackError, match="ended while starting, exit code 3"),
    ):
        running.wait_ready(20, never)


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(tmp_path, monkeypatch, HANGS) as running:
        with pytest.raises(DevStackError, match="not ready after 0 s"):
            running.wait_ready(0, never)
        with pytest.raises(StartCancelledError):
            running.wait_ready(20, lambda: True)
