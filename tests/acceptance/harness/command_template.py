"""A process that has imported all that commands import, and becomes commands by forking.

    forked_command.py ─ connects ─► template: Python, belfry, and all packages
         ▲    the fork's id, then     └─ fork ─► folder, variables, files and group of whoever
         └─── its exit code ───────────────────  asked; `belfry …`; ends

`commands.py` starts it, with a socket that listens and one whose end it dies with.  An order is its
length (4 bytes, with three files beside them), then arguments, variables and folder by `marshal`.
Answers are lines: the fork's id, 0 where none was made, and its exit code (negative: the signal).

The fork dies with whoever asked for it, and with the template.
"""

from __future__ import annotations

import ctypes
import gc
import marshal
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final, NamedTuple

from belfry.cli.program import MODULES

ROOT: Final = Path(__file__).parents[3]
# What commands import when they run.
IMPORTED: Final = (
    *("belfry.cli.entry", "belfry.cli.program", "belfry.cli.failures", "belfry.cli.tables"),
    *("belfry.client", "belfry.settings", "belfry.schedules.preview", "belfry.kafka.topics"),
    *("belfry.registry.client", "belfry.registry.subjects", "belfry.cli.doctor_topics"),
    *("belfry.cli.doctor_cluster", "belfry.cli.doctor_worker", "belfry.cli.verified_topics"),
    *("confluent_kafka.admin", "cron_descriptor", "fastavro", "httpx2", "orjson", "structlog"),
    *("rich.console", "rich.table", "pygments"),
)
# They start processes of their own, measure, or last.
OWN: Final = ("dev", "worker", "bench", "mcp", "mirror")
# Read by belfry when it runs, or by shells; what else differs may be read when Python starts.
READ_LATER: Final = frozenset(
    ("PATH", "PWD", "OLDPWD", "SHLVL", "_", "NO_COLOR", "PYTEST_CURRENT_TEST", "PYTHONPATH")
)
PR_SET_PDEATHSIG: Final = 1
# Whoever connects has all that it sends ready.
PATIENCE_S: Final = 30.0


class Order(NamedTuple):
    """What somebody wants to be run, and where."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str


class Running(NamedTuple):
    """A fork, and who waits for it."""

    pid: int
    asker: socket.socket


class Template:
    """Answers whoever connects, until its owner ends."""

    def __init__(self, owner: socket.socket, door: socket.socket) -> None:
        self._environment = read_early(os.environ)
        self._path = os.environ.get("PYTHONPATH", "")
        self._door = door
        self._waits = DefaultSelector()
        self._waits.register(owner, EVENT_READ)
        self._waits.register(door, EVENT_READ)

    def serve(self) -> Order:
        """Fork and wait; returns in a fork alone, with what it was forked for."""
        while True:
            for key, _ in self._waits.select():
                if key.fileobj is self._door:
                    if forked := self._asked():
                        return forked
                elif key.data is None:
                    os._exit(0)
                elif key.fileobj is key.data.asker:
                    self._left(key.data)
                else:
                    self._ended(int(key.fd), key.data)

    def _asked(self) -> Order | None:
        """Make a fork for whoever connects; its order in the fork, None in the template."""
        asker, _ = self._door.accept()
        try:
            order, files = received(asker)
        except (OSError, EOFError):
            asker.close()
            return None
        peer = asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        whose = struct.unpack("3i", peer)[0]
        if not self._fits(order) or os.getsid(whose) != os.getsid(0):
            asker.sendall(b"0\n")
            asker.close()
            pid = 0
        elif pid := os.fork():
            # Before anybody is told its id, who may send something to its group.
            with suppress(OSError):
                os.setpgid(pid, os.getpgid(whose))
            running = Running(pid, asker)
            self._waits.register(asker, EVENT_READ, running)
            self._waits.register(os.pidfd_open(pid), EVENT_READ, running)
            asker.sendall(b"%d\n" % pid)
        else:
            asker.close()
            self._become(order, files, whose)
            return order
        for each in files:
            os.close(each)
        return None

    def _fits(self, order: Order) -> bool:
        """Whether a fork is what a process with these variables would be."""
        path = order.environment.get("PYTHONPATH", "")
        return (
            not {*OWN} & {*order.arguments}
            and path in (self._path, str(ROOT / "app"))
            and read_early(order.environment) == self._environment
        )

    def _become(self, order: Order, files: list[int], whose: int) -> None:
        """Be what a process is that `whose` has started."""
        template = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != template:
            os._exit(1)
        for key in list(self._waits.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._waits.close()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, whose))
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(order.folder)
        # As of a process that is started so, where modules of its folder come first.
        sys.path[0] = order.folder
        sys.argv = ["belfry", *order.arguments]
        os.environ.clear()
        os.environ.update(order.environment)

    def _left(self, running: Running) -> None:
        """Whoever asked has ended before the fork."""
        self._waits.unregister(running.asker)
        running.asker.close()
        os.kill(running.pid, signal.SIGKILL)

    def _ended(self, handle: int, running: Running) -> None:
        self._waits.unregister(handle)
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(running.pid, 0)[1])
        if running.asker.fileno() >= 0:
            self._waits.unregister(running.asker)
            with suppress(OSError):
                running.asker.sendall(b"%d\n" % code)
            running.asker.close()


def received(asker: socket.socket) -> tuple[Order, list[int]]:
    """What is asked for, and the three files of who asks."""
    asker.settimeout(PATIENCE_S)
    head, files, _, _ = socket.recv_fds(asker, 4, 3)
    size, body = int.from_bytes(head, "big"), b""
    while len(body) < size:
        more = asker.recv(size - len(body))
        if not more:
            raise EOFError
        body += more
    found: Any = marshal.loads(body)
    return Order(*found), list(files)


def read_early(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that Python, the C library and packages may read when they start."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("BELFRY_") and name not in READ_LATER
    }


def main() -> int:
    """Answer until the owner ends; a fork returns as the command that it became."""
    owner, door = (socket.socket(fileno=int(each)) for each in sys.argv[1:3])
    for name in (*IMPORTED, *(f"belfry.cli.{each}" for each in MODULES if each not in OWN)):
        import_module(name)
    # A fork has none of these.
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "an import has started a thread"
    gc.collect()
    gc.freeze()
    Template(owner, door).serve()
    from belfry.cli.entry import main as belfry

    return belfry()


if __name__ == "__main__":
    sys.exit(main())
