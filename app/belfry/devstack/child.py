"""Child processes that do not outlive their parent, and requests to stop.

An orderly end is the task of the caller: `Child.stop` sends SIGTERM, waits, and then kills.  The
rest of this text is about a parent that gets SIGKILL and cannot act any more.

On **Linux** the kernel does it: a child asks for ``PR_SET_PDEATHSIG``, and gets SIGKILL when its
parent dies.  Two problems are solved here.  For the kernel the parent is the *thread* that started
the child, so all children are started by one thread that lives as long as the process (`_Spawner`).
And the request has to be made by the child itself: a tiny Python launcher makes it and then becomes
the program by ``exec``, which keeps both the request and the process id.

On **other systems** there is no such request.  Children are stopped in an orderly way on Ctrl-C,
SIGTERM and every exception, but a parent that is killed with SIGKILL leaves them running: they
have to be ended by hand, by the ids in the ready file.

Children get a process group of their own.  So Ctrl-C in a terminal reaches only the parent, and the
parent decides the order of the stops.

**`StopSignals`** is a flag that loops check, instead of an exception.  An exception raised by a
signal handler could come between the start of a child and the moment at which the child is known,
and the child would be forgotten.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_LAUNCHER = """
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
Popen = subprocess.Popen[bytes]
# SIGHUP: the terminal was closed.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Child:
    """A running child process; its ``pid`` is the program's own."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start ``argv`` (absolute program first); output goes to ``log``, else to our own."""
        self.argv = tuple(argv)
        self._popen = _spawner().start(lambda: _popen(self.argv, env, log, cwd))

    @property
    def pid(self) -> int:
        """Process id of the program."""
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Exit code (negative: the signal that ended it), or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout_s: float) -> bool:
        """Whether the child ended within ``timeout_s``."""
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self, grace_s: float = 15.0) -> None:
        """Ask it to end, wait, and kill it if it still runs after ``grace_s``."""
        if self.exit_code() is None:
            self._popen.terminate()
            if not self.wait(grace_s):
                self.kill()
        self._popen.wait()

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        if self.exit_code() is None:
            self._popen.send_signal(signal.SIGKILL)
        self._popen.wait()


def _popen(
    argv: Sequence[str], env: Mapping[str, str] | None, log: Path | None, cwd: Path | None
) -> Popen:
    output = log.open("ab") if log else None
    try:
        return subprocess.Popen(
            _with_death_pact(argv),
            env=dict(os.environ) if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            process_group=0,
            cwd=cwd,
        )
    finally:
        if output:
            output.close()


def _with_death_pact(argv: Sequence[str]) -> list[str]:
    if not sys.platform.startswith("linux"):
        return list(argv)
    # Isolated and without site-packages: the launcher is up in some 20 ms, whatever is installed.
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *argv]


class _Spawner:
    """The thread that is the parent of all children; it ends only with the process."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[Callable[[], Popen], Future[Popen]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._run, name="belfry-spawner", daemon=True).start()

    def start(self, popen: Callable[[], Popen]) -> Popen:
        """Run ``popen`` in the spawning thread; its exceptions are raised here."""
        started: Future[Popen] = Future()
        self._orders.put((popen, started))
        return started.result()

    def _run(self) -> None:
        while True:
            popen, started = self._orders.get()
            try:
                started.set_result(popen())
            except BaseException as failure:  # noqa: BLE001 - it is raised by `start` instead.
                started.set_exception(failure)


_spawner_lock = threading.Lock()


_running: dict[int, _Spawner] = {}


def _spawner() -> _Spawner:
    """The spawner of this process; a forked process gets one of its own, with its own thread."""
    with _spawner_lock:
        if os.getpid() not in _running:
            _running[os.getpid()] = _Spawner()
        return _running[os.getpid()]


class StopSignals:
    """Whether a signal has asked this process to stop."""

    def __init__(self) -> None:
        self._made = False

    def made(self) -> bool:
        """Whether a stop signal came in."""
        return self._made

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take stop signals as requests within the context (main thread only)."""
        before = {one: signal.signal(one, self._note) for one in STOP_SIGNALS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._made = True
