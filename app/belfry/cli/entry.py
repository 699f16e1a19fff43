"""Where a command begins and ends: its arguments, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code.  Errors that are expected are told, others are bugs."""
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
