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
        self._answers = self._orders.makefile("r", encoding="utf-8")

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Give an order, and wait for the answer."""
        with self._lock:
            self._orders.sendall(json.dumps(order).encode() + b"\n")
            line = self._answers.readline()
        assert line, f"the template has ended with {self._process.wait(5)}"
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """End it, with all that it has forked."""
        self._process.kill()
        self._process.wait()
        self._answers.close()
        self._orders.close()


class Forked:
    """A running fork: what `belfry.devstack.child.Child` is for other programs."""

    def __init__(
        self, template: Template, argv: list[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        """Become ``belfry`` with these arguments."""
        order = {"argv": argv, "env": dict(env), "cwd": str(Path.cwd()), "log": str(log.absolute())}
        self.pid: int = template.ask(order)["pid"]
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
        if not sys.platform.startswith("linux"):
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
                atexit.register(self._end)
            self._turn += 1
            return self._running[self._turn % 2]

    def _end(self) -> None:
        for each in self._running:
            each.end()


def foreign(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that are read by others than belfry."""
    apart = {"PYTEST_CURRENT_TEST"}
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("BELFRY_") and name not in apart
    }


TEMPLATES: Final = Templates()
