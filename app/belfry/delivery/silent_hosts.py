"""Hosts that do not answer, as a dispatcher hears of them: for metrics, readiness and doctor.

The breaker itself is where posts are made (`hosts.py`), perhaps in another process.  What comes
back from there says enough: posts without an answer, and deliveries that were postponed for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import structlog

from belfry.api.workers.view import SilentHostView
from belfry.delivery.answers import HOST_BROKEN, INTERRUPTED, Answer
from belfry.delivery.hosts import FAILURES
from belfry.telemetry.limited import LimitedLogger

MOST: Final = 10_000
NAMED: Final = 3
# A host without a try for so long is not known to be silent still: its deliveries were given up, or
# go elsewhere.
REMEMBERED_MS: Final = 3_600_000.0

log = structlog.get_logger(__name__)


class SilentHosts:
    """Posts in a row without an answer, by host.  One thread writes; any other may read."""

    def __init__(self, now_ms: Callable[[], float], wall_ms: Callable[[], float]) -> None:
        """`now_ms` is a monotonic clock, `wall_ms` epoch milliseconds, for people."""
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._missed: OrderedDict[str, int] = OrderedDict()
        # Hosts that are silent, with the monotonic instant of the last try: a mapping of its own
        # for each change, as other threads read it.
        self._silent: dict[str, tuple[float, SilentHostView]] = {}
        # A host that comes and goes would fill the log.
        self._log = LimitedLogger(log)

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        """Hosts that do not answer, in the order of their names."""
        since_ms = self._now_ms() - REMEMBERED_MS
        return sorted(name for name, (at_ms, _) in self._silent.items() if at_ms > since_ms)

    def views(self) -> list[SilentHostView]:
        """The same, each with since when, why, and when it is tried again."""
        silent = self._silent
        return [silent[name][1] for name in self.names() if name in silent]

    def after(self, answer: Answer) -> None:
        """Take in the result of an attempt; any answer, even a refusal, shows that a host is there.

        An attempt that was postponed says nothing new of a host, unless it was for its silence.
        Targets of other kinds have no host.
        """
        if answer.code in (INTERRUPTED, HOST_BROKEN):
            return
        address = urlsplit(answer.target)
        if address.scheme not in ("http", "https"):
            return
        postponed = answer.code == "host_silent"
        name, missed = address.netloc.lower(), 0
        if postponed or not answer.heard:
            missed = max(FAILURES if postponed else 0, self._missed.get(name, 0) + 1)
        self._keep(name, missed, answer)

    def forget(self) -> None:
        """Others deliver from now on, and hear of hosts."""
        self._missed.clear()
        self._silent = {}

    def sentence(self) -> str:
        """Which hosts do not answer, for people; empty where all do."""
        silent = self.names()
        if not silent:
            return ""
        named = ", ".join(silent[:NAMED])
        more = f" and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
        return (
            f"webhook hosts do not answer: {named}{more}; deliveries to them are tried again later,"
            " and those to other hosts go on. Their owners have to look; belfry deliveries list"
            " shows what was given up"
        )

    def _keep(self, name: str, missed: int, answer: Answer) -> None:
        was_silent = name in self._silent
        if missed:
            self._missed[name] = missed
            self._missed.move_to_end(name)
            while len(self._missed) > MOST:
                self._missed.popitem(last=False)
        else:
            self._missed.pop(name, None)
        if missed < FAILURES and not was_silent:
            return
        kept = {host: at for host, at in self._silent.items() if host in self._missed}
        self._silent = {**kept, name: self._seen(name, answer)} if missed else kept
        if missed and not was_silent:
            told = "a webhook host does not answer: deliveries to it are tried again later"
            self._log.warning("silent", told, host=name, cause=answer.reason)
        elif not missed:
            self._log.warning("answers", "a webhook host answers again", host=name)

    def _seen(self, name: str, answer: Answer) -> tuple[float, SilentHostView]:
        """A silent host after one more attempt; one that was postponed keeps the cause before."""
        _, before = self._silent.get(name, (0.0, None))
        at_ms, reason = int(self._wall_ms()), answer.reason
        if answer.code == "host_silent" and before is not None:
            reason = before.reason
        since_ms = at_ms if before is None else before.since_ms
        view = SilentHostView(name, since_ms, at_ms, answer.not_before_ms, reason)
        return self._now_ms(), view
