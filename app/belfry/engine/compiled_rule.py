"""Compiled rules: a rule as firing asks for it, worked out once for all schedules that share it.

Thousands of schedules have one rule (`EVERY` of a minute, say), so the compiled rule is remembered
by the rule's bytes.  HTTP targets are cut off first: they differ from schedule to schedule.

    record ─► bytes of the rule ─► without targets ─► CompiledRule (one for all that share it)

Each answer that firing needs for an occurrence is an attribute here, worked out once: whether it
recurs, its lateness limit, its locks.  Threads of several partitions share the values and never
change them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Self

from belfry.schedules.rule import DEFAULT_ACK_TIMEOUT_MS, WAITING_OVERLAPS, without_targets
from belfry.schedules.triggers import MOST_RULES, trigger_of
from belfry.schedules.triggers.levels import level_in
from belfry.store.layout.pending import MOST_NUMBER
from belfry.store.layout.records import LOCKS_GROUP, LOCKS_OWN

NEVER: Final = 1 << 62
QUEUE_ALL: Final = "QUEUE_ALL"
CANCEL_OTHER: Final = "CANCEL_OTHER"
TERMINATE_OTHER: Final = "TERMINATE_OTHER"
# With the acknowledgement the latest that is due fires for all.
FOR_LATEST: Final = frozenset({"QUEUE_ONE", CANCEL_OTHER})


class CompiledRule:
    """A rule as firing asks for it; shared by all schedules of the rule.

    `max_fires` also ends a schedule without a limit, when the number of its next fire has no room
    at rest.  `overlap` decides about an occurrence that is due while the last fire is not
    acknowledged; empty if it fires all the same.  `awaits` has the locks of a fire, how long it is
    awaited (ms), and how many of its group may be awaited at once; None if nothing waits for it.
    `level` is that of its priority (`levels.py`).  A fire in time of a `simple` rule asks for
    nothing but the next occurrence.
    """

    __slots__ = (
        *(
            "after_ms",
            "awaits",
            "calendar",
            "level",
            "limit_ms",
            "max_fires",
            "overlap",
            "recurs",
            "rule",
            "simple",
        ),
        "trigger",
    )

    def __init__(self, encoded_rule: bytes) -> None:
        self.trigger = trigger_of(encoded_rule)
        self.rule = self.trigger.rule
        self.recurs = self.rule.recurs
        self.after_ms = self.trigger.after_ms
        self.calendar = self.rule.calendar
        self.level = level_in(encoded_rule)
        limit_ms = self.rule.lateness_limit_ms
        self.limit_ms = NEVER if limit_ms is None else limit_ms
        self.max_fires = self.rule.max_fires or MOST_NUMBER
        overlap = self.rule.overlap
        self.overlap = overlap if overlap in WAITING_OVERLAPS and overlap else ""
        locks = LOCKS_GROUP * bool(self.rule.at_once) | LOCKS_OWN * bool(self.overlap)
        wait_ms = self.rule.ack_timeout_ms or DEFAULT_ACK_TIMEOUT_MS
        self.awaits = (locks, wait_ms, self.rule.at_once) if locks else None
        self.simple = self.recurs and not locks

    def __deepcopy__(self, _memo: object) -> Self:
        """Itself, for it never changes; zones that it may hold cannot be copied."""
        return self

    def why_over(self, nominal_ms: int, fires: int) -> str | None:
        """Why nothing follows this instant, the last of so many fires, where no bound says so."""
        return (self.trigger.why_over(nominal_ms) or None) if fires < self.max_fires else None


# Of a rule that holds no targets.
compiled_bare: Final = lru_cache(maxsize=MOST_RULES)(CompiledRule)


def compiled(encoded_rule: bytes) -> CompiledRule:
    """A rule as it lies in a pending record; shared, so never change it."""
    return compiled_bare(without_targets(encoded_rule))
