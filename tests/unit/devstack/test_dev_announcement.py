"""What `belfry dev` says once all of it answers."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.cli import dev
from belfry.cli.entry import main
from belfry.devstack import Apicurio, DevStackError, Kafka, Stack
from belfry.devstack.child import Child, StopSignals


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """Addresses of a stack that does not run; its processes are asleep."""
    stack = Stack(Kafka(tmp_path / "kafka", 9092), Apicurio(tmp_path / "registry", 8081))
    for service in (stack.kafka, stack.registry):
        service._child = Child(["/bin/sleep", "60"])
    return stack


def test_the_line_to_paste_is_one_line_of_shell() -> None:
    words = shlex.split(dev.first_event_line(9092))
    belfry = shlex.split(dev.belfry_command())
    expected = [*belfry, "schedule", "create", "demo", "hello", "--in", "10s"]
    expected += ["--payload", "hello, belfry", "&&"]
    expected += [*belfry, "events", "tail", "demo", "--max", "1"]
    assert words == expected


def test_another_port_is_named_to_both_commands() -> None:
    assert dev.first_event_line(9095).count(" --bootstrap-servers 127.0.0.1:9095") == 2


def test_belfry_is_called_by_its_path_when_only_our_environment_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / ".venv" / "bin" / "belfry")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / ".venv" / "bin"))
    assert dev.belfry_command() == ".venv/bin/belfry"
    monkeypatch.chdir(Path.home())
    assert dev.belfry_command() == str(tmp_path / ".venv" / "bin" / "belfry")


def test_belfry_is_called_as_a_module_when_there_is_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    monkeypatch.setenv("PATH", "")
    assert dev.belfry_command() == "'my env/bin/python' -m belfry.cli"


def test_belfry_is_called_by_name_when_it_is_installed_for_every_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "local" / "belfry")
    monkeypatch.setenv("PATH", str(tmp_path / "local"))
    assert dev.belfry_command() == "belfry"


def test_without_a_worker_nothing_is_offered_to_schedule(stack: Stack) -> None:
    said = "\n".join(dev.announcement(stack, None))
    assert "127.0.0.1:9092" in said
    assert "http://127.0.0.1:8081/apis/ccompat/v7" in said
    assert "schedule create" not in said
    stack.stop()


def test_it_ends_with_the_address_of_the_console(stack: Stack) -> None:
    worker: Any = SimpleNamespace(http_url="http://127.0.0.1:8700")
    *_, last = dev.announcement(stack, worker)
    assert last.endswith("  http://127.0.0.1:8700")
    stack.stop()


def test_the_ready_file_has_the_contracts_names(stack: Stack, tmp_path: Path) -> None:
    ready = tmp_path / "new" / "ready.json"
    dev.write_ready_file(ready, stack, None)
    assert json.loads(ready.read_text()) == {
        "bootstrap_servers": "127.0.0.1:9092",
        "schema_registry_url": "http://127.0.0.1:8081/apis/ccompat/v7",
        "http_url": None,
        "pids": {"kafka": stack.kafka.pid, "registry": stack.registry.pid, "worker": None},
    }
    assert [one.name for one in ready.parent.iterdir()] == ["ready.json"]
    stack.stop()


def test_the_death_of_a_child_ends_the_watch(stack: Stack) -> None:
    stack.registry.kill()
    said = dev._watch(stack, None, lambda: False)
    assert said
    assert f"The registry (process {stack.registry.pid}) ended with exit code -9" in said
    assert str(stack.registry.log_file) in said
    stack.stop()


def test_the_end_of_a_log_keeps_its_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies() -> None:
        raise DevStackError("Kafka ended while starting. The end of kafka.log:\none\n\x1b[2Jtwo")

    monkeypatch.setattr(dev, "prepare", dies)
    assert main(["dev"]) == 1
    told = "belfry: Kafka ended while starting. The end of kafka.log:\none\n\\u001b[2Jtwo\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stop_signals_are_requests(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = StopSignals()
    with stop.listening():
        assert not stop.made()
        os.kill(os.getpid(), number)
        assert stop.made()
    assert signal.getsignal(number) is before


def _program(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
