"""Turns of tenants that want to redrive by one worker, which does one at a time.

    12:00:00   shop sends for ten seconds          mail asks: busy, and waits
    12:00:10   shop asks for its next slice        refused: it had the last turn, and mail waits
    12:00:11   mail asks again                     its turn; shop asks meanwhile, and waits
    12:00:21   mail asks for its next slice        refused: shop waits

So a tenant has one redrive at a time, and a tenant with many records does not keep the others out.
A tenant that has not asked again for `WAITS_MS` waits no more.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from belfry.api.problems import Problem

# Longer than the command pauses between two calls.
WAITS_MS: Final = 5_000


class RedriveTurns:
    """Remembers the tenant of the last turn, and those refused since; belongs to one event loop."""

    def __init__(self) -> None:
        self._last: str | None = None
        # When each tenant was refused last, epoch ms.
        self._waiting: dict[str, int] = {}

    def see(self, tenant: str, now_ms: int) -> None:
        """See that it is the tenant's turn; raises `Problem` where others wait for theirs."""
        since_ms = now_ms - WAITS_MS
        self._waiting = {name: at for name, at in self._waiting.items() if at >= since_ms}
        if tenant == self._last and self._waiting.keys() - {tenant}:
            self.refused(tenant, now_ms)
            detail = f"{tenant} had the last redrive, and another tenant waits for its: try again."
            again = {"retry-after": "1"}
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "busy", again)

    def refused(self, tenant: str, now_ms: int) -> None:
        """A tenant was told to try again."""
        self._waiting[tenant] = now_ms

    def had(self, tenant: str) -> None:
        """A tenant has had a turn."""
        self._last = tenant
        self._waiting.pop(tenant, None)
