"""Topics of dead letters: those that exist, may be written to, and have a leader everywhere.

    belfry.dead-letters.shop    there, and belfry may write to it     shop gets its dead letters
    belfry.dead-letters.bank    refused a record a moment ago         left alone for a minute

Such a topic is optional, and belfry never makes one: an operator makes it so that this tenant can
read its letters. A letter lies in `belfry.rejected` as well, so no step waits for such a topic: if
one refuses a record, a step is rolled back once, and the topic is then left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog
from confluent_kafka.admin import AdminClient

from belfry.host import machine
from belfry.outputs.topic_queue import largest_records, not_writable
from belfry.tenants.directory import Tenants

PAUSE_S: Final = 60.0

log = structlog.get_logger(__name__)


class LetterTopics:
    """Tells the directory which topics of dead letters can be written to; for all threads."""

    def __init__(self, admin: AdminClient, tenants: Tenants) -> None:
        self._admin = admin
        self._register = tenants.topics
        self._prefix = tenants.names.letters
        self._lock = machine.Lock()
        # Topics that refused a record, and until when they are left alone (monotonic seconds).
        self._left_alone: dict[str, float] = {}
        # Topics that were without a leader in the last look.
        self._doubted: set[str] = set()

    @property
    def open(self) -> list[str]:
        """The topics that letters are written to now."""
        return list(self._register.letters)

    def look(self, topics: Mapping[str, Any], now_s: float) -> None:
        """Take in all topics that exist; asks the cluster about those that are new."""
        there = {
            name: all(partition.leader >= 0 for partition in topic.partitions.values())
            for name, topic in topics.items()
            if name.startswith(self._prefix) and topic.error is None
        }
        before, known = self._register.letters, dict[str, int]()
        for name in before.keys() & there.keys():
            # Leaders move as brokers stop, so one look without a leader does not count yet.
            if there[name] or name not in self._doubted:
                known[name] = before[name]
        self._doubted = {name for name in known if not there[name]}
        new = {name for name, led in there.items() if led} - known.keys() - self._left_out(now_s)
        blocked = not_writable(self._admin, new) if new else set[str]()
        known |= dict(largest_records(self._admin, new - blocked))
        with self._lock:
            self._left_alone |= dict.fromkeys(blocked, now_s + PAUSE_S)
            # A topic may have refused a record since this look began.
            alone = self._left_alone.keys()
            self._register.letters = {
                name: most for name, most in known.items() if name not in alone
            }
        for topic in sorted(blocked):
            _tell(topic, "belfry may not write to it: allow it the operation WRITE")

    def _left_out(self, now_s: float) -> set[str]:
        """The topics that are still left alone; after their time they may be asked about again."""
        with self._lock:
            left = {name: at_s for name, at_s in self._left_alone.items() if at_s > now_s}
            self._left_alone = left
            return set(left)

    def refuse(self, topic: str, reason: str) -> None:
        """A topic refused a record: no letters are written to it for a minute."""
        if not topic.startswith(self._prefix):
            return
        with self._lock:
            self._left_alone[topic] = machine.monotonic() + PAUSE_S
            left = {name: most for name, most in self._register.letters.items() if name != topic}
            self._register.letters = left
        _tell(topic, reason)


def _tell(topic: str, reason: str) -> None:
    log.warning("dead letters are in the topic of refusals alone", topic=topic, reason=reason)
