"""Workers as forks of a template, which has imported all that they import (`template.py`).

A worker imports for a second of CPU before it begins, and the suite starts hundreds of them. A fork
begins at once, and is in all else a process like others: it has variables, a folder, a log and a
process group of its own, is killed, and has an exit code.

Python hashes strings by a number that it draws when it starts, so forks of one template hash them
alike. Two templates take turns: what depends on it is seen by workers that differ, as before.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
# A template that others on the machine hold up has to import belfry within so many seconds.
PATIENCE_S: Final = 120.0


class Template:
    """A running template, and the variables that it was started with."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._orders, theirs = socket.socketpair()
        self._orders.settimeout(PATIENCE_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.harness.template", str(theirs.fileno())],
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self._asked = 0
        self._said = b""

    @property
    def runs(self) -> bool:
        """Whether it has not ended; nothing that it has forked lives longer."""
        return self._process.poll() is None

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Give an order, and wait for its answer.

        A test that takes too long is interrupted, perhaps here. The answer that it has not waited
        for is nobody else's, and what was forked for it is killed.
        """
        with self._lock:
            self._asked += 1
            self._orders.sendall(json.dumps({**order, "number": self._asked}).encode() + b"\n")
            while (found := self._answer())["number"] != self._asked:
                if "pid" in found:
                    os.kill(found["pid"], signal.SIGKILL)
        return found

    def _answer(self) -> dict[str, Any]:
        while b"\n" not in self._said:
            more = self._orders.recv(4096)
            assert more, f"the template has ended with {self._process.wait(5)}"
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """End it, with all that it has forked."""
        self._process.kill()
        self._process.wait()
        self._orders.close()


class Forked:
    """A running fork: what `belfry.devstack.child.Child` is for other programs."""

    def __init__(
        self, template: Template, argv: list[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        """Become ``belfry`` with these arguments, at the priority that this thread has now."""
        order = {"argv": argv, "env": dict(env), "cwd": str(Path.cwd()), "log": str(log.absolute())}
        # Whoever reads it need not wait until the fork has opened it.
        log.touch()
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        self.pid: int = template.ask({**order, "nice": priority})["pid"]
        self._template = template
        self._code: int | None = None
        # It stays a process until it is asked how it ended, so the id is nobody else's.
        self._handle = os.pidfd_open(self.pid)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            os.close(self._handle)

    def exit_code(self) -> int | None:
        """Exit code (negative: the signal that ended it), or None while it runs."""
        if self._code is None and self.wait(0):
            while self._code is None:
                self._code = self._template.ask({"ended": self.pid})["code"]
        return self._code

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within ``timeout_s``."""
        looks = select.poll()
        looks.register(self._handle, select.POLLIN)
        return bool(looks.poll(timeout_s * 1000))

    def stop(self, grace_s: float = 15.0) -> None:
        """Ask to end, wait, and kill what is still there after ``grace_s``."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGTERM)
            if not self.wait(grace_s):
                self.kill()

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGKILL)
            while self.exit_code() is None:
                self.wait(60)


class Templates:
    """Two templates of this process, which take turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Template] = []
        self._environment: dict[str, str] = {}
        self._turn = 0

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is what a process with these variables would be.

        Those that Python, the C library and packages read when they start are a template's own.
        """
        if not has_pidfds():
            return False
        with self._lock:
            if not self._running:
                self._environment = foreign(os.environ)
            return foreign(environment) == self._environment

    def next(self) -> Template:
        """The one whose turn it is."""
        with self._lock:
            if not self._running:
                self._running = [Template(self._environment) for _ in range(2)]
                atexit.register(self.end)
            self._turn += 1
            turn = self._turn % 2
            if not self._running[turn].runs:
                # The test that it ended in has failed; those that follow do not.
                self._running[turn].end()
                self._running[turn] = Template(self._environment)
            return self._running[turn]

    def end(self) -> None:
        """End both, with all that they have forked."""
        for each in self._running:
            each.end()


@cache
def has_pidfds() -> bool:
    """Whether a process can be waited for that is no child; old containers forbid it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def foreign(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that are read by others than belfry."""
    apart = {"PYTEST_CURRENT_TEST"}
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("BELFRY_") and name not in apart
    }


TEMPLATES: Final = Templates()
