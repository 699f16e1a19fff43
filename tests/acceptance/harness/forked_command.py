"""Stands in the place of ``python -m belfry.cli``, and has the command forked by a template.

    a test, or a page's shell ─ starts ─► this program ─ arguments, variables, folder, and its
                                             │           three files ─► `command_template.py`
                                             │                              └─ fork ─► `belfry …`
                                             └─ waits, and ends as the fork has ended

It passes signals on, and the fork dies with it.  Where the template says that a fork would not be
what a process of its own is, it becomes that process.  It imports little, since it is there to save
time: 20 ms instead of most of a second.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(address: str, arguments: list[str]) -> int:
    """Have the command forked, and wait for its end; its exit code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as template:
        template.connect(address)
        order = marshal.dumps((arguments, dict(os.environ), os.getcwd()))  # noqa: PTH109  # pathlib takes longer
        socket.send_fds(template, [len(order).to_bytes(4, "big")], [0, 1, 2])
        template.sendall(order)
        with template.makefile("r") as answers:
            pid = int(answers.readline())
            if not pid:
                own = [sys.executable, "-m", "belfry.cli", *arguments]
                os.execv(sys.executable, own)
            _pass_on(pid)
            code = int(answers.readline() or -signal.SIGKILL)
    if code < 0:
        _end_by(-code)
    return code


def _pass_on(pid: int) -> None:
    """Give signals to the fork, but for those that this process was started deaf to."""

    def give(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, give)


def _end_by(number: int) -> None:
    with suppress(OSError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
