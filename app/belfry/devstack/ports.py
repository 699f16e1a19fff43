"""Free ports of the loopback address.

A port is free when it can be bound now.  Another process may take it before a Java process binds
it; `Stack` notices that and moves on to the next port, so a look is enough here.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection, Iterable

from belfry.devstack.errors import DevStackError

LOOPBACK = "127.0.0.1"
# Ports for "any" lie below the range of outgoing connections (32768 and up on Linux), which could
# take such a port at any moment.
ANY_PORT = range(20_000, 32_000)
TRIES = 200


def free_port(preferred: int = 0, avoid: Collection[int] = ()) -> int:
    """The first free port from ``preferred`` on; with 0 any free one."""
    for port in _candidates(preferred):
        if port not in avoid and can_bind(port):
            return port
    raise DevStackError(
        f"No free port among the {TRIES} from {preferred or 'a random start'} on. "
        "Give another one, or 0 for any."
    )


def free_ports(count: int, avoid: Collection[int] = ()) -> list[int]:
    """``count`` free ports that differ, for listeners that open together."""
    found: list[int] = []
    for _ in range(count):
        found.append(free_port(avoid=[*avoid, *found]))
    return found


def can_bind(port: int) -> bool:
    """Whether a listener could be opened on the loopback address right now."""
    with socket.socket() as probe:
        # Connections of a listener that ended a moment ago linger, but do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def _candidates(preferred: int) -> Iterable[int]:
    if preferred == 0:
        return (secrets.choice(ANY_PORT) for _ in range(TRIES))
    return range(preferred, min(preferred + TRIES, 65_536))
