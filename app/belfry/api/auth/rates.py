"""How quick a caller may be: buckets of tokens, and failures of addresses that show bad tokens.

A token bucket lets a caller do a second's worth at once, and then as much as flows in:

    5 a second     12:00:00.0   five calls: all at once, the bucket is empty
                   12:00:00.1   a sixth: half a token has come, wait 0.1 s (429, Retry-After)
                   12:00:00.2   a token is there
                   12:00:03.0   five tokens again, and never more

Rates are counted by each worker for itself, so a caller of three workers may do three times as
much. All of it belongs to one event loop.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

# Names that are remembered; of more, the one that took longest ago is forgotten.
MOST_NAMES: Final = 10_000


class TokenBuckets:
    """A bucket of tokens for each name: `per_second` flow in, a second's worth is kept.

    A call that costs more than the rest is let in if one token is left, and the name waits for the
    other tokens afterwards: so a request of many lines is paid for, however large it is.
    """

    def __init__(self, per_second: float) -> None:
        """`per_second` is every name's rate, unless `take` is told another one."""
        self._per_second = per_second
        # In the order in which they took last.
        self._left: dict[str, tuple[float, float]] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the name has taken anything lately."""
        return name in self._left

    def wait_s(self, name: str, now_ms: float, per_second: float | None = None) -> float:
        """Seconds until there is a token, 0 where there is one."""
        rate = per_second or self._per_second
        left = self._now(name, now_ms, rate)
        return 0.0 if left >= 1 else (1 - left) / rate

    def take(self, name: str, now_ms: float, per_second: float | None = None) -> float:
        """Take a token; returns the seconds to wait if there is none, else 0."""
        rate = per_second or self._per_second
        left = self._now(name, now_ms, rate)
        if left < 1:
            return (1 - left) / rate
        self._keep(name, left - 1, now_ms)
        return 0.0

    def charge(
        self, name: str, tokens: int, now_ms: float, per_second: float | None = None
    ) -> None:
        """Take tokens, whether they are there or not."""
        left = self._now(name, now_ms, per_second or self._per_second)
        self._keep(name, left - tokens, now_ms)

    def _keep(self, name: str, left: float, now_ms: float) -> None:
        """Note how many tokens are left, as the latest of all names."""
        self._left.pop(name, None)
        self._left[name] = (left, now_ms)
        if len(self._left) > MOST_NAMES:
            # The one that has waited longest: its bucket is the likeliest to be full again.
            del self._left[next(iter(self._left))]

    def _now(self, name: str, now_ms: float, rate: float) -> float:
        """How many tokens a name has by now."""
        left, then_ms = self._left.get(name, (rate, now_ms))
        return min(rate, left + max(0.0, now_ms - then_ms) * rate / 1000)


class FailedTokens:
    """Addresses that showed bad tokens, and tokens that were good there.

    An address with too many failures is refused before its token is looked at.  Tokens that were
    good at that address since its first failure go on: others may share it, behind a proxy say.
    """

    def __init__(self, per_second: float) -> None:
        """At most so many failures a second of one address."""
        self._rate = TokenBuckets(per_second)
        self._good: dict[bytes, None] = {}

    def wait_s(self, address: str, shown: str | None, now_ms: float) -> float:
        """Seconds for which this is refused unseen; 0 where it may be looked at."""
        if address not in self._rate:
            return 0.0
        wait_s = self._rate.wait_s(address, now_ms)
        return 0.0 if wait_s == 0 or self._mark(address, shown) in self._good else wait_s

    def failed(self, address: str, now_ms: float) -> None:
        """The shown token is bad."""
        self._rate.charge(address, 1, now_ms)

    def worked(self, address: str, shown: str | None) -> None:
        """The shown token is good."""
        if address in self._rate:
            self._good[self._mark(address, shown)] = None
            if len(self._good) > MOST_NAMES:
                del self._good[next(iter(self._good))]

    @staticmethod
    def _mark(address: str, shown: str | None) -> bytes:
        return sha256(f"{address} {shown}".encode(errors="replace")).digest()
