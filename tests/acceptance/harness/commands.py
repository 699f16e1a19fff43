"""How tests start `belfry`: as a fork of a template, which has imported what commands import.

A command imports for most of a second of CPU before it does its work, which takes a tenth of that,
and tests of pages and promises start hundreds.  `make test` forks them (`command_template.py`); in
all else they are ``python -m belfry.cli``, and so they are where a fork would not be the same.
"""

from __future__ import annotations

import atexit
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from tests.acceptance.harness.forked import ROOT, has_pidfds

CLIENT: Final = Path(__file__).with_name("forked_command.py")
PROCESS: Final = (sys.executable, "-m", "belfry.cli")


class CommandTemplate:
    """The template of this process's commands; it is started with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._life: socket.socket | None = None

    @property
    def address(self) -> str:
        """Where it answers; one that has ended is replaced."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._start()
            assert self._folder is not None
            return str(Path(self._folder.name, "door"))

    def _start(self) -> None:
        # A path of a socket has to be short, which those of tests are not.
        self._folder = tempfile.TemporaryDirectory(prefix="belfry-")
        self._life, theirs = socket.socketpair()
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(str(Path(self._folder.name, "door")))
            door.listen(128)
            given = [str(theirs.fileno()), str(door.fileno())]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.harness.command_template", *given],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), door.fileno()],
                process_group=0,
            )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._life is not None:
            self._life.close()
        if self._folder is not None:
            self._folder.cleanup()

    def end(self) -> None:
        """End it, with all that it has forked."""
        with self._lock:
            self._end()
            self._process = self._life = self._folder = None


COMMANDS: Final = CommandTemplate()
atexit.register(COMMANDS.end)


def belfry() -> list[str]:
    """The beginning of a command line, up to the name of the program."""
    if "PYTEST_XDIST_WORKER" in os.environ and has_pidfds():
        return [sys.executable, "-IS", str(CLIENT), COMMANDS.address]
    return [*PROCESS]


def put_on_path(folder: Path, *, forked: bool = True) -> None:
    """Put a program `belfry` into a folder that is on somebody's path."""
    folder.mkdir(exist_ok=True)
    program = folder / "belfry"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(belfry() if forked else PROCESS)} "$@"\n')
    program.chmod(0o755)
