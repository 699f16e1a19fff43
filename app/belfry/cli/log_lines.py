"""Where log lines of a command go: to stderr, since stdout is for results alone.

Rooms that workers use as well write log lines, such as one for a record that nobody of belfry
wrote. A worker says where they go, and without that they go to stdout: into a backup that is
written there, into an export, between the brackets of a JSON document.

`structlog` is slow to import, so light commands go without. Each command that reads what such a
room reads calls `to_stderr` first.
"""

from __future__ import annotations

import sys


def to_stderr() -> None:
    """Send log lines of this process to stderr, unless it has said already where they go."""
    import structlog

    if not structlog.is_configured():
        # Looked up for each logger: tests take another stream each time.
        structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
