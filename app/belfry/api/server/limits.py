"""How much the HTTP port lets in.

`PortLimits` are values of settings, and `Traffic` counts. What a caller may do besides is told in
`auth/`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Final

# Calls are many where so many have come within so many seconds: a hundred a second.
MANY: Final = 50
WITHIN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class PortLimits:
    """What the port lets in; `hosts` and `origins` are allowed besides names of this machine.

    With `addresses` any IP address is a good `Host` too: no web page has one as its own name.

    A body may have `body_bytes`, JSON lines `bulk_bytes`, and those under way `bodies_bytes`
    together; `unwanted_bytes` are read of one that is refused.  `per_second` are the calls of one
    caller, `failures_per_second` the tokens of one address that are worth nothing.
    """

    hosts: frozenset[str] = frozenset()
    addresses: bool = False
    origins: frozenset[str] = frozenset()
    body_bytes: int = 1_100_000
    bulk_bytes: int = 16_000_000
    unwanted_bytes: int = 32_000_000
    bodies_bytes: int = 256_000_000
    under_way: int = 1_000
    # Times in seconds: for a part of a body, and for an answer.
    per_second: float = 5_000.0
    failures_per_second: float = 20.0
    body_s: float = 10.0
    answer_s: float = 30.0


class Traffic:
    """How many calls are under way; counted in the port's loop, and read from anywhere.

    Instants are seconds of the monotonic clock. When calls ended does not matter: where answers
    are slow, calls come all the same.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._came_s = deque([-inf] * MANY, MANY)

    def began(self, now_s: float) -> None:
        """A call has come in."""
        self.calls += 1
        self._came_s.append(now_s)

    def ended(self) -> None:
        """A call has been answered."""
        self.calls -= 1

    def many(self, now_s: float) -> bool:
        """Whether many calls have come just now, and so will the next."""
        return now_s - self._came_s[0] < WITHIN_S
