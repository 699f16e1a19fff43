"""Where a command begins and ends: its arguments, and the exit code.

Typer parses and runs the command. An expected error is told as one sentence
(`belfry.cli.failures`); anything else is a bug of belfry, and is raised with its traceback, so that
it can be reported. The imports stand in the function, so that `--version` and help do not wait for
libraries.

Nearly all that a start makes stays: classes and functions of a thousand modules. Python would look
through all of them for garbage again and again, a fifth of the time that a start takes, and once
more at the end, which takes as long.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Final

# So many new objects, not 700, before Python looks for garbage among them.
NEW_OBJECTS: Final = 50_000
# Exit code of a command that Ctrl-C ends, as shells have it: 128 and the number of the signal.
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Errors that are expected are told, others are bugs.

    `arguments` are those behind the name of the program; None takes those of the process. It may be
    called several times in one process, as tests do.
    """
    if arguments is not None:
        return _run(list(arguments))
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    try:
        return _run(sys.argv[1:])
    finally:
        # All that is left ends with the process, and need not be looked through before.
        gc.freeze()


def _run(given: list[str]) -> int:
    try:
        return _told(given)
    except KeyboardInterrupt:
        # Typer ends a command so; this is for Ctrl-C while modules are still loaded.
        return INTERRUPTED


def _told(given: list[str]) -> int:
    """The exit code of a command, whose expected errors are told."""
    from belfry.cli.failures import tell
    from belfry.cli.program import program

    try:
        code = program(*given[:1])(args=given, prog_name="belfry", standalone_mode=False)
    except Exception as error:
        known = tell(error)
        if known is None:
            raise
        return known
    return int(code or 0)
