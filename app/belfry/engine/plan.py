"""Plans: a rule as firing asks for it, worked out once for all schedules that share it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from belfry.schedules.misfire import SKIP
from belfry.schedules.rule import DEFAULT_ACK_TIMEOUT_MS, without_targets
from belfry.schedules.triggers import trigger_of
from belfry.store.layout.pending import MOST_NUMBER
from belfry.store.layout.records import LOCKS_GROUP, LOCKS_OWN

NEVER: Final = 1 << 62
QUEUE_ONE: Final = "QUEUE_ONE"


class Plan:
    """A rule as firing asks for it; shared by all schedules of the rule."""

    __slots__ = (
        *("after_ms", "awaits", "limit_ms", "max_fires", "overlap", "plain", "recurs", "rule"),
        "trigger",
    )

    def __init__(self, encoded_rule: bytes) -> None:
        self.trigger = trigger_of(encoded_rule)
        self.rule = self.trigger.rule
        self.recurs = self.rule.recurs
        self.after_ms = self.trigger.after_ms
        limit_ms = self.rule.lateness_limit_ms
        self.limit_ms = NEVER if limit_ms is None else limit_ms
        # What fires without a limit ends when the number of its next fire has no room at rest.
        self.max_fires = self.rule.max_fires or MOST_NUMBER
        # What becomes of what is due while its last fire is awaited; empty where that is no matter.
        self.overlap = self.rule.overlap if self.rule.overlap in (SKIP, QUEUE_ONE) else ""
        closes = LOCKS_GROUP * bool(self.rule.serial) | LOCKS_OWN * bool(self.overlap)
        # What a fire closes, and how long its acknowledgement is awaited; None: it is not.
        wait_ms = self.rule.ack_timeout_ms or DEFAULT_ACK_TIMEOUT_MS
        self.awaits = (closes, wait_ms) if closes else None
        # Whether a fire in time asks for nothing but the next one.
        self.plain = self.recurs and not closes


# The plan of a rule that holds no targets.
bare_plan_of = lru_cache(maxsize=65_536)(Plan)


def plan_of(encoded_rule: bytes) -> Plan:
    """The plan of a rule as it lies in a pending record; shared, so never change it."""
    return bare_plan_of(without_targets(encoded_rule))
