"""A Java server as an object: start, wait until it answers, stop, kill, start again.

`Kafka` and `Apicurio` give the command line, and decide what counts as an answer; all the rest is
here.  The output of a server goes to ``<data dir>/logs/<name>.log``, the one of the run before is
in ``<name>.log.1``.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from belfry.devstack.child import Child
from belfry.devstack.errors import DevStackError, PortTakenError, StartCancelledError
from belfry.devstack.ports import free_port

# Seconds between two questions whether the server answers.
POLL_S = 0.05
# Lines of the log that an error message shows.
TAIL_LINES = 15
# The messages of Java servers whose port is taken.
PORT_TAKEN = re.compile(r"already in use|in use by another|already bound", re.IGNORECASE)


class JavaService(ABC):
    """One Java process bound to one loopback port, with a directory of its own.

        made ── start ──► starting ── wait_ready ──► answers ── stop, kill ──► ended ── start ──► …

    It is used by one thread. The process dies with its parent, however that ends (`child`).
    """

    name: str

    def __init__(self, data_dir: Path, port: int, heap_mb: int) -> None:
        """``port`` 0 takes any free one, once: it stays the same over stop and start."""
        self.data_dir = data_dir.absolute()
        self.port = port or free_port()
        self.heap_mb = heap_mb
        self._child: Child | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Prepare the data directory and give the command line."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server does its work."""

    def _environment(self) -> Mapping[str, str]:
        """Environment of the process."""
        return os.environ

    def _folder(self) -> Path | None:
        """Folder that the process starts in; None for that of its parent."""
        return None

    @property
    def log_file(self) -> Path:
        """Output of the present run."""
        return self.data_dir / "logs" / f"{self.name}.log"

    @property
    def temp_dir(self) -> Path:
        """Temporary files of the present run."""
        return self.data_dir / "tmp"

    @property
    def pid(self) -> int:
        """Process id of the Java process."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._child is not None and self._child.exit_code() is None

    def exit_code(self) -> int | None:
        """Exit code of the process, or None while it runs."""
        return self._started().exit_code()

    def start(self) -> Self:
        """Start the process, without waiting for it to answer.

        Temporary files of the run before are removed, and its log is kept as ``.log.1``. Raises
        `DevStackError` where it runs already.
        """
        if self.running:
            raise DevStackError(f"{self.name} runs already (process {self.pid}).")
        self._tidy_up()
        argv = self._command()
        self._child = Child(argv, env=self._environment(), log=self.log_file, cwd=self._folder())
        return self

    def wait_ready(
        self, timeout_s: float = 60.0, cancelled: Callable[[], bool] = lambda: False
    ) -> Self:
        """Wait until the server answers; its death, the time or ``cancelled`` end the wait.

        ``cancelled`` is called twenty times a second. Raises `PortTakenError` where another process
        has the port, `StartCancelledError`, and `DevStackError` with the end of the log.
        """
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            self._check_alive()
            if cancelled():
                raise StartCancelledError(f"{self.name} was still starting.")
            if time.monotonic() > deadline:
                raise DevStackError(
                    f"{self.name} does not answer on port {self.port} after {timeout_s:.0f} s. "
                    f"{self._log_tail()}"
                )
            time.sleep(POLL_S)
        return self

    def stop(self, grace_s: float = 15.0) -> None:
        """Ask it to end, wait ``grace_s``, then kill it; nothing to do where it never started."""
        if self._child:
            self._child.stop(grace_s)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._started().kill()

    def _started(self) -> Child:
        if self._child is None:
            raise DevStackError(f"{self.name} was not started.")
        return self._child

    def _check_alive(self) -> None:
        """Raise for a process that has ended, with the end of its log."""
        if self.exit_code() is None:
            return
        # Another server on the port may answer in place of this one, so the port is checked first.
        failure = PortTakenError if PORT_TAKEN.search(self._log_text()) else DevStackError
        raise failure(
            f"{self.name} ended while starting on port {self.port}, "
            f"exit code {self.exit_code()}. {self._log_tail()}"
        )

    def _log_text(self) -> str:
        return self.log_file.read_text("utf-8", errors="replace")

    def _log_tail(self) -> str:
        lines = self._log_text().splitlines()[-TAIL_LINES:]
        return f"The end of {self.log_file}:\n" + "\n".join(lines)

    def _tidy_up(self) -> None:
        """Remove the files of the run before, and put its log aside."""
        shutil.rmtree(self.temp_dir, ignore_errors=True)
        for directory in (self.temp_dir, self.log_file.parent):
            directory.mkdir(parents=True, exist_ok=True)
        if self.log_file.exists():
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
