"""The command line: `belfry`.

    belfry dev                        Kafka, a registry and a worker on this machine
    belfry schedule create demo hello --in 5s --payload 'hello, belfry'
    belfry events tail demo

Writes go through Kafka and wait for the verdict.  Every command takes the options of
`belfry.cli.session`; what goes wrong is told in one sentence on stderr, and by the exit code:
0 ok, 1 error, 2 usage, 3 not found, 4 conflict.  Commands import what they need when they run, so
that help comes at once.
"""

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
