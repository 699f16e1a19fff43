"""How much the HTTP port lets in.

`PortLimits` are values of settings, and `Traffic` counts. What a caller may do besides is told in
`auth/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# A call that ended so recently still counts as traffic.
LATELY_S: Final = 0.1


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


@dataclass(slots=True)
class Traffic:
    """How many calls are under way; counted in the port's loop, and read from anywhere."""

    calls: int = 0
    ended_s: float = -LATELY_S

    def began(self) -> None:
        """A call has come in."""
        self.calls += 1

    def ended(self, now_s: float) -> None:
        """A call has been answered, at this instant of the monotonic clock."""
        self.calls -= 1
        self.ended_s = now_s

    def lately(self, now_s: float) -> bool:
        """Whether a call is under way or was a moment ago: where many come, so will the next."""
        return self.calls > 0 or now_s - self.ended_s < LATELY_S
