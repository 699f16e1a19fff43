"""Errors of the embedded stack, with messages for its user.

DevStackError
├── PortTakenError        another process listens there: try another port
└── StartCancelledError   the caller asked to stop while something was still starting
"""

from __future__ import annotations


class DevStackError(Exception):
    """The embedded stack cannot go on; the message says what is wrong and what to do."""


class PortTakenError(DevStackError):
    """The port was taken between its choice and its use."""


class StartCancelledError(DevStackError):
    """The wait for a start was given up on request."""
