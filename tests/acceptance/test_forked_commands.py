"""Commands that the suite forks from a template are processes as others are."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from belfry import __version__
from belfry.devstack import free_port
from tests.acceptance.harness import commands
from tests.acceptance.harness.command_template import Order, Template
from tests.acceptance.harness.commands import CLIENT, PROCESS, CommandTemplate
from tests.acceptance.harness.forked import ROOT
from tests.acceptance.harness.site import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone")

# Asks a broker that is not there for a minute.
LASTS = ("events", "tail", "demo", "--bootstrap-servers")


@pytest.fixture(scope="module")
def template() -> Iterator[CommandTemplate]:
    """A template of its own."""
    found = CommandTemplate()
    yield found
    found.end()


def command(template: CommandTemplate, *words: str) -> list[str]:
    return [sys.executable, "-IS", str(CLIENT), template.address, *words]


def ran(template: CommandTemplate, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """How a command ended, and what it wrote."""
    given = command(template, *words)
    return subprocess.run(given, capture_output=True, text=True, check=False, **more)


def forks(template: CommandTemplate) -> list[int]:
    """What a template has forked and not yet buried."""
    assert template._process is not None
    pid = template._process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def lasting(template: CommandTemplate) -> tuple[subprocess.Popen[bytes], int]:
    """A command that runs until it is ended, and its fork."""
    started = subprocess.Popen(command(template, *LASTS, f"127.0.0.1:{free_port()}"))
    (fork,) = wait_for("a fork", lambda: forks(template), 60)
    return started, fork


def test_it_has_arguments_variables_folder_and_files_of_its_own(
    template: CommandTemplate, tmp_path: Path
) -> None:
    assert ran(template, "--version").stdout == f"belfry {__version__}\n"
    (tmp_path / "belfry.toml").write_text("here = 1\n")
    env = {**os.environ, "BELFRY_HTTP_PORT": "of its own"}
    shown = ran(template, "config", "show", cwd=tmp_path, env=env)
    assert "here" in shown.stdout + shown.stderr
    assert "of its own" in shown.stdout + shown.stderr
    wrong = ran(template, "schedule", "no such thing")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "no such thing" in wrong.stderr


def test_it_reads_what_is_piped_into_it_and_ends_a_pipe(template: CommandTemplate) -> None:
    words = ("schedule", "preview", "--cron", "0 9 * * MON", "-o", "jsonl")
    alone = subprocess.run([*PROCESS, *words], capture_output=True, text=True, check=True).stdout
    assert ran(template, *words).stdout.splitlines()[0][:40] == alone.splitlines()[0][:40]
    # Nobody else holds its pipe open, though others are forked meanwhile.
    other, fork = lasting(template)
    assert ran(template, *words, timeout=60).returncode == 0
    other.kill()
    other.wait()
    wait_for("its end", lambda: fork not in forks(template))


def test_signals_reach_it_and_it_dies_with_whoever_asked(template: CommandTemplate) -> None:
    interrupted, fork = lasting(template)
    assert os.getpgid(fork) == os.getpgid(interrupted.pid)
    os.kill(fork, signal.SIGKILL)
    assert interrupted.wait(60) == -signal.SIGKILL
    terminated, _ = lasting(template)
    terminated.terminate()
    assert terminated.wait(60) != 0
    killed, fork = lasting(template)
    killed.kill()
    killed.wait()
    wait_for("its end", lambda: not Path(f"/proc/{fork}").exists())


def test_it_has_the_priority_of_who_asks(template: CommandTemplate) -> None:
    started = subprocess.Popen(
        ["nice", "-n", "19", *command(template, *LASTS, f"127.0.0.1:{free_port()}")]
    )
    (fork,) = wait_for("a fork", lambda: forks(template), 60)
    wait_for("its priority", lambda: os.getpriority(os.PRIO_PROCESS, fork) == 19)
    started.kill()
    started.wait()
    wait_for("its end", lambda: not forks(template))


@pytest.mark.parametrize(
    ("words", "variables", "fits"),
    [
        (["schedule", "list"], {"BELFRY_HTTP_PORT": "1", "PATH": "/bin", "SHLVL": "2"}, True),
        (["schedule", "list"], {"PYTHONPATH": str(ROOT / "app")}, True),
        (["schedule", "list"], {"PYTHONPATH": "/of/another/release"}, False),
        (["schedule", "list"], {"TZ": "Asia/Tokyo"}, False),
        (["schedule", "list"], {"LD_PRELOAD": "clock.so"}, False),
        (["dev"], {}, False),
        (["--config-file", "none.toml", "worker"], {}, False),
    ],
)
def test_what_a_fork_would_not_be_is_not_forked(
    words: list[str], variables: dict[str, str], fits: bool
) -> None:
    owner, door = socket.socketpair()
    with owner, door:
        served = Template(owner, door)
        order = Order(words, {**os.environ, **variables}, str(ROOT))
        assert served._fits(order) == fits
        served._waits.close()


def test_what_is_not_forked_is_run_all_the_same(template: CommandTemplate) -> None:
    seen = ran(template, "dev", "--help", env={**os.environ, "PYTHONPATH": str(ROOT / "app")})
    assert seen.returncode == 0, seen.stderr
    assert "--kafka-port" in seen.stdout


def test_a_template_that_has_ended_is_replaced(template: CommandTemplate) -> None:
    before = template.address
    assert template._process is not None
    template._process.kill()
    template._process.wait()
    assert template.address != before
    assert ran(template, "--version").returncode == 0


def test_only_the_suite_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert commands.belfry() == [*PROCESS]
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert str(CLIENT) in commands.belfry()
