"""Where a command begins and ends: its arguments, and the exit code.

Typer parses and runs the command. What it raises is told as one sentence where it is expected
(`belfry.cli.failures`); anything else is a bug of belfry, and is raised with its traceback, so that
it can be reported. The imports stand in the function, so that `--version` and help do not wait for
libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Errors that are expected are told, others are bugs.

    `arguments` are those behind the name of the program; None takes those of the process. It may be
    called several times in one process, as tests do.
    """
    from belfry.cli.failures import tell
    from belfry.cli.program import program

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = program()(args=given, prog_name="belfry", standalone_mode=False)
    except Exception as error:
        known = tell(error)
        if known is None:
            raise
        return known
    return int(code or 0)
