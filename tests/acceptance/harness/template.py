"""A process that has imported all that a worker imports, and becomes workers by forking.

    pytest ─ orders ─► template: Python, belfry, and all packages
                          └─ fork ─► folder, variables and log of its own; `belfry worker`; ends

It is a program, which `forked.py` starts and asks: one line of JSON for each order, one for each
answer, on the socket whose number it is given.

    {"argv": […], "env": {…}, "cwd": …, "log": …, "nice": 0}    {"pid": 4711}
    {"ended": 4711}                                             {"code": null}, then {"code": -9}

An answer has the `number` of its order.

The template dies with the process that started it, and each fork with the template.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

# With all that these import, nothing is left that a worker would import before it fires.
IMPORTED: Final = (
    *("belfry.cli.entry", "belfry.cli.program", "belfry.cli.worker", "belfry.assembly"),
    *("belfry.api.routes.app", "belfry.console.routes", "belfry.telemetry.logs"),
    *("uvicorn", "uvicorn.lifespan.off", "uvicorn.loops.uvloop", "uvloop", "httptools"),
)
PR_SET_PDEATHSIG: Final = 1


def main() -> int:
    """Answer orders until nobody gives any more; a fork returns as the command that it became."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    for name in IMPORTED:
        importlib.import_module(name)
    # A fork has none of these.
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "an import has started a thread"
    gc.collect()
    gc.freeze()
    codes = dict[int, int]()
    with orders.makefile("r", encoding="utf-8") as stream:
        for line in stream:
            order = json.loads(line)
            answer = _ended(order["ended"], codes) if "ended" in order else _forked(order, codes)
            if answer is None:
                break
            # Past the stream, which would forget what it has read ahead.
            orders.sendall(json.dumps({**answer, "number": order["number"]}).encode() + b"\n")
        else:
            # What was forked would be waited for by nobody.
            os._exit(0)
    orders.close()
    from belfry.cli.entry import main as belfry

    return belfry()


def _ended(pid: int, codes: dict[int, int]) -> dict[str, int | None]:
    """How a fork has ended; it may be asked again by who was not told in time."""
    if pid not in codes:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            codes[pid] = os.waitstatus_to_exitcode(status)
    return {"code": codes.get(pid)}


def _forked(order: dict[str, Any], codes: dict[int, int]) -> dict[str, int | None] | None:
    """The fork's id; None in the fork."""
    template = os.getpid()
    if pid := os.fork():
        codes.pop(pid, None)
        # Whoever is told its id may send something to its group.
        os.setpgid(pid, pid)
        return {"pid": pid}
    if os.getpriority(os.PRIO_PROCESS, 0) != order["nice"]:
        os.setpriority(os.PRIO_PROCESS, 0, order["nice"])
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != template:
        os._exit(1)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for number in (1, 2):
        os.dup2(log, number)
    os.close(log)
    os.chdir(order["cwd"])
    # As of a process that is started so, where modules of its folder come first.
    sys.path[0] = order["cwd"]
    sys.argv = ["belfry", *order["argv"]]
    os.environ.clear()
    os.environ.update(order["env"])
    return None


if __name__ == "__main__":
    sys.exit(main())
