"""Hosts that do not answer, as a dispatcher hears of them: for metrics, readiness and doctor.

The breaker itself is where posts are made (`hosts.py`), perhaps in another process.  What comes
back from there says enough: posts without an answer, and deliveries that were postponed for it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from urllib.parse import urlsplit

import structlog

from belfry.delivery.answers import Answer
from belfry.delivery.hosts import FAILURES
from belfry.telemetry.limited import LimitedLogger

MOST: Final = 10_000
NAMED: Final = 3

log = structlog.get_logger(__name__)


class SilentHosts:
    """Posts in a row without an answer, by host.  One thread writes; any other may read."""

    def __init__(self) -> None:
        self._missed: OrderedDict[str, int] = OrderedDict()
        self._silent: frozenset[str] = frozenset()
        # A host that comes and goes would fill the log.
        self._log = LimitedLogger(log)

    def __len__(self) -> int:
        return len(self._silent)

    def after(self, answer: Answer) -> None:
        """Take in what an attempt came to; any answer, even a refusal, shows that a host is there.

        An attempt that was postponed says nothing new of a host, unless it was for its silence.
        """
        name = urlsplit(answer.target).netloc.lower() or answer.target
        postponed = answer.code == "host_silent"
        if answer.heard and not postponed:
            missed = 0
        else:
            missed = max(FAILURES if postponed else 0, self._missed.get(name, 0) + 1)
        self._keep(name, missed, answer)

    def sentence(self) -> str:
        """Which hosts do not answer, for people; empty where all do."""
        silent = sorted(self._silent)
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
        if missed:
            self._missed[name] = missed
            self._missed.move_to_end(name)
            while len(self._missed) > MOST:
                self._missed.popitem(last=False)
        elif self._missed.pop(name, 0) < FAILURES:
            return
        # A set of its own, for readers in other threads.
        if (missed >= FAILURES) == (name in self._silent):
            return
        self._silent = frozenset(
            host for host, number in self._missed.items() if number >= FAILURES
        )
        if missed:
            told = "a webhook host does not answer: deliveries to it are tried again later"
            self._log.warning("silent", told, host=name, cause=answer.reason)
        else:
            self._log.warning("answers", "a webhook host answers again", host=name)
