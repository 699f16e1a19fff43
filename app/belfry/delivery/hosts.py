"""Hosts apart from one another: so many posts at once to each, and a breaker for those that hang.

    closed ── 5 posts in a row without an answer ──► open: nothing is sent, deliveries are postponed
       ▲                                               │ a pause, doubled each time
       └── an answer ◄── one post is let through ◄─────┘

Any answer, even a refusal, closes it: a host that answers holds up no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Posts in a row without an answer that open the breaker, and the pauses that follow, in ms.
FAILURES: Final = 5
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000
# A host without a post for so long is forgotten.
FORGET_MS: Final = 600_000


@dataclass(slots=True)
class Host:
    """One host: posts under way, and the results of the last ones."""

    under_way: int = 0
    failures: int = 0
    open_until_ms: int = 0
    probing: bool = False
    seen_ms: int = 0

    def closed_until_ms(self, now_ms: int) -> int:
        """The instant before which no post is sent; 0 if a post may go now."""
        if self.failures < FAILURES:
            return 0
        if now_ms < self.open_until_ms:
            return self.open_until_ms
        return now_ms + FIRST_PAUSE_MS if self.probing else 0

    def try_now(self) -> None:
        """Somebody asks for it: where it is open, the next post goes out, as after its pause."""
        self.open_until_ms = 0

    def begin(self, now_ms: int) -> None:
        """A post goes out."""
        self.seen_ms = now_ms
        self.under_way += 1
        self.probing = self.failures >= FAILURES

    def end(self, now_ms: int, *, heard: bool) -> None:
        """A post has come to its end; `heard` where the host answered."""
        self.seen_ms = now_ms
        self.under_way -= 1
        self.probing = False
        if heard:
            self.failures = self.open_until_ms = 0
            return
        self.failures += 1
        if self.failures >= FAILURES:
            doublings = min(self.failures - FAILURES, 16)
            pause_ms = min(FIRST_PAUSE_MS << doublings, LONGEST_PAUSE_MS)
            self.open_until_ms = max(self.open_until_ms, now_ms + pause_ms)


class Hosts:
    """All hosts that were posted to lately."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._swept_ms = 0

    def of(self, name: str, now_ms: int) -> Host:
        """The host of this name."""
        if now_ms - self._swept_ms > FORGET_MS:
            self._sweep(now_ms)
        return self._hosts.setdefault(name, Host(seen_ms=now_ms))

    def _sweep(self, now_ms: int) -> None:
        """Forget hosts without a post for a while."""
        self._swept_ms = now_ms
        self._hosts = {
            name: host
            for name, host in self._hosts.items()
            if host.under_way or now_ms - host.seen_ms < FORGET_MS
        }
