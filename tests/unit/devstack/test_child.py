"""Child processes: their ids, their ends, and the end of their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from belfry.devstack.child import Child

SLEEP = ["/bin/sleep", "60"]
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""
PARENT = """
import sys, time, threading
from belfry.devstack.child import Child
started = []
thread = threading.Thread(target=lambda: started.append(Child(["/bin/sleep", "60"])))
thread.start()
thread.join()
print(started[0].pid, flush=True)
time.sleep(60)
"""


def test_output_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Child(["/bin/echo", "hello"], log=log)
    assert child.wait(10)
    assert (child.exit_code(), log.read_text()) == (0, "hello\n")


def test_the_pid_is_the_programs_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Child([sys.executable, "-c", "import os; print(os.getpid())"], log=log)
    assert child.wait(10)
    assert int(log.read_text()) == child.pid


def test_stop_asks_first() -> None:
    child = Child(SLEEP)
    child.stop()
    assert child.exit_code() == -signal.SIGTERM


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Child([sys.executable, "-c", DEAF], log=log)
    _wait_for(lambda: log.read_text() == "deaf\n")
    child.stop(grace_s=0.2)
    assert child.exit_code() == -signal.SIGKILL


def test_ends_can_be_repeated() -> None:
    child = Child(SLEEP)
    child.kill()
    child.kill()
    child.stop()
    assert child.exit_code() == -signal.SIGKILL


def test_a_missing_program_is_an_exit_code(tmp_path: Path) -> None:
    child = Child(["/nonexistent/program"], log=tmp_path / "log")
    assert child.wait(10)
    assert child.exit_code() != 0


def test_a_child_outlives_the_thread_that_asked_for_it() -> None:
    started: list[Child] = []
    thread = threading.Thread(target=lambda: started.append(Child(SLEEP)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert started[0].exit_code() is None
    started[0].kill()


def test_ctrl_c_in_the_terminal_does_not_reach_a_child() -> None:
    child = Child(SLEEP)
    assert os.getpgid(child.pid) != os.getpgid(0)
    child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_sigkill_of_the_parent_ends_the_child() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert _runs(pid)
        parent.kill()
    _wait_for(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    """Whether a process is there and not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for(condition: object, timeout_s: float = 10.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
