"""A process that has imported all that a worker imports, and becomes workers by forking.

    pytest ─ orders ─► template: Python, belfry, and all packages
                          └─ fork ─► folder, variables and log of its own; `belfry worker`; ends

It is a program, which `forked.py` starts and asks: one line of JSON for each order, one for each
answer, on the socket whose number it is given.

    {"argv": […], "env": {…}, "cwd": …, "log": …}    {"pid": 4711}
    {"ended": 4711}                                  {"code": null}, or once {"code": -9}

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
    with orders.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            order = json.loads(line)
            answer = {"code": _ended(order["ended"])} if "ended" in order else _forked(order)
            if answer is None:
                break
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
        else:
            # What was forked would be waited for by nobody.
            os._exit(0)
    orders.close()
    from belfry.cli.entry import main as belfry

    return belfry()


def _ended(pid: int) -> int | None:
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _forked(order: dict[str, Any]) -> dict[str, int] | None:
    """The fork's id; None in the fork."""
    template = os.getpid()
    if pid := os.fork():
        return {"pid": pid}
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
