"""`belfry dev` as a whole process: addresses, ports, signals, deaths, restarts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from belfry.devstack import free_port
from belfry.devstack.probing import http_status

pytestmark = pytest.mark.slow


@dataclass
class Dev:
    """One run of the command."""

    process: subprocess.Popen[str]
    ready_file: Path
    output: Path

    def wait_ready(self) -> dict[str, Any]:
        wait_for(lambda: self.ready_file.exists() or self.process.poll() is not None, 100)
        assert self.process.poll() is None, self.said()
        found: dict[str, Any] = json.loads(self.ready_file.read_text())
        return found

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def said(self) -> str:
        return self.output.read_text()


@contextmanager
def dev(home: Path, *arguments: str) -> Iterator[Dev]:
    ready_file = home / f"ready-{time.monotonic_ns()}.json"
    output = ready_file.with_suffix(".txt")
    options = ["--data-dir", str(home / "data"), "--ready-file", str(ready_file)]
    ports = ["--kafka-port", "0", "--registry-port", "0", "--http-port", "0", *arguments]
    with (
        output.open("w") as out,
        subprocess.Popen(
            [sys.executable, "-m", "belfry.cli", "dev", *options, *ports],
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        try:
            yield Dev(process, ready_file, output)
        finally:
            process.kill()


def wait_for(condition: Callable[[], bool], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def gone(pids: dict[str, int | None]) -> bool:
    return not any(pid and Path(f"/proc/{pid}").exists() for pid in pids.values())


def topics(ready: dict[str, Any]) -> set[str]:
    admin = AdminClient({"bootstrap.servers": ready["bootstrap_servers"], "log_level": 0})
    return set(admin.list_topics(timeout=10).topics)


@pytest.fixture(scope="module")
def wished_ports() -> Iterator[list[int]]:
    """Two ports that somebody else listens on."""
    with socket.socket() as one, socket.socket() as other:
        for listener in (one, other):
            listener.bind(("127.0.0.1", free_port()))
            listener.listen()
        yield [listener.getsockname()[1] for listener in (one, other)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run that several tests look at has its files."""
    return tmp_path_factory.mktemp("dev")


@pytest.fixture(scope="module")
def running(home: Path, wished_ports: list[int]) -> Iterator[Dev]:
    """A run that is ready, although both its ports were taken."""
    kafka, registry = map(str, wished_ports)
    with dev(home, "--no-worker", "--kafka-port", kafka, "--registry-port", registry) as run:
        run.wait_ready()
        yield run


def test_what_the_ready_file_names_answers(running: Dev) -> None:
    ready = running.wait_ready()
    assert set(ready) == {"bootstrap_servers", "schema_registry_url", "http_url", "pids"}
    assert ready["http_url"] is ready["pids"]["worker"] is None
    assert http_status(ready["schema_registry_url"] + "/subjects") == 200
    assert isinstance(topics(ready), set)
    for name, main in (("kafka", "kafka.Kafka"), ("registry", "quarkus-run.jar")):
        assert main in Path(f"/proc/{ready['pids'][name]}/cmdline").read_text()


def test_taken_ports_move_on_and_say_so(running: Dev, wished_ports: list[int]) -> None:
    moved = int(running.wait_ready()["bootstrap_servers"].rpartition(":")[2])
    assert moved > wished_ports[0]
    assert f"Port {wished_ports[0]} is taken. Kafka takes {moved}." in running.said()
    assert f"Port {wished_ports[1]} is taken. The schema registry takes" in running.said()


def test_a_second_dev_in_the_same_directory_is_refused(running: Dev, home: Path) -> None:
    with dev(home, "--no-worker") as second:
        assert second.process.wait(30) == 1
    assert "is in use by another belfry stack" in second.said()
    assert f"process {running.process.pid}" in second.said()
    assert running.process.poll() is None


def test_topics_survive_sigkill_which_leaves_no_java_process(tmp_path: Path) -> None:
    with dev(tmp_path, "--no-worker") as first:
        ready = first.wait_ready()
        admin = AdminClient({"bootstrap.servers": ready["bootstrap_servers"], "log_level": 0})
        admin.create_topics([NewTopic("kept", 1)])["kept"].result(30)
        first.end(signal.SIGKILL)
        wait_for(lambda: gone(ready["pids"]), 5)
    with dev(tmp_path, "--no-worker") as second:
        ready = second.wait_ready()
        assert "kept" in topics(ready)
        assert second.end(signal.SIGTERM) == 0
        assert gone(ready["pids"])


def test_the_death_of_a_child_ends_everything(tmp_path: Path) -> None:
    with dev(tmp_path, "--no-worker") as run:
        pids = run.wait_ready()["pids"]
        os.kill(pids["kafka"], signal.SIGKILL)
        assert run.process.wait(30) == 1
        assert gone(pids)
        assert f"The kafka (process {pids['kafka']}) ended with exit code -9" in run.said()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_during_the_start_is_a_stop(tmp_path: Path, number: signal.Signals) -> None:
    with dev(tmp_path, "--no-worker") as run:
        wait_for((tmp_path / "data" / "registry" / "logs" / "registry.log").exists)
        assert run.end(number) == 0
        assert not run.ready_file.exists()


def test_the_line_to_paste_schedules_an_event_and_shows_it_fire(tmp_path: Path) -> None:
    with dev(tmp_path) as run:
        ready = run.wait_ready()
        assert http_status(ready["http_url"] + "/healthz/ready") == 200
        assert gone({"worker": ready["pids"]["worker"]}) is False
        (line,) = [one for one in run.said().splitlines() if "schedule create demo" in one]
        pasted = subprocess.run(
            line, shell=True, capture_output=True, text=True, timeout=60, check=False
        )
        assert pasted.returncode == 0, pasted.stderr
        assert "hello, belfry" in pasted.stdout
        assert run.end(signal.SIGTERM) == 0
        assert gone(ready["pids"])
