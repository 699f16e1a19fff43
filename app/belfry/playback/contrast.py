"""Differences between two playbacks of the same requests: as it was, and as it would be.

An event is the same on both sides by its id, which follows from schedule, life, version and
instant.  It is kept until the other side has fired it too, so memory grows with the differences.
Events that are left at the end are the same by their schedule and number: under other time zone
data the instant of an event, and so its id, is another one.

    as it was       a 12:00:00.000   b 12:00:00.000   c 12:00:00.000
    as it would be  a 12:00:00.000   b 12:00:01.000                      later: 1; not at all: 1
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from belfry.playback.virtual import VirtualEvent

# Examples that are kept of each kind, for each tenant.
MOST_EXAMPLES: Final = 3


class MovedEvent(NamedTuple):
    """An event that differs: when it fired, and when it would; None for not by the end."""

    schedule_id: str
    scheduled_at: str
    was_ms: int | None
    would_ms: int | None


@dataclass(slots=True)
class TenantContrast:
    """One tenant's events and refused requests on both sides.

    `missing` would not have fired by the end, `new` would have besides.  `most_later_ms` is the
    longest delay.
    """

    fires: int = 0
    would_fire: int = 0
    earlier: int = 0
    later: int = 0
    most_later_ms: int = 0
    missing: int = 0
    new: int = 0
    refused: int = 0
    would_refuse: int = 0
    examples: list[MovedEvent] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether anything would have been otherwise."""
        moved = self.earlier or self.later or self.missing or self.new
        return bool(moved) or self.refused != self.would_refuse


class Contrast:
    """Collects the events of both sides; `tenants` is complete after `end`."""

    def __init__(self) -> None:
        self.tenants: defaultdict[str, TenantContrast] = defaultdict(TenantContrast)
        self._was: dict[bytes, VirtualEvent] = {}
        self._would: dict[bytes, VirtualEvent] = {}
        self._shown: Counter[tuple[str, str]] = Counter()

    def was(self, event: VirtualEvent) -> None:
        """An event of the side that is as it was."""
        self.tenants[event.tenant].fires += 1
        other = self._would.pop(event.identity, None)
        if other is None:
            self._was[event.identity] = event
        else:
            self._match(event, other)

    def would(self, event: VirtualEvent) -> None:
        """An event of the other side."""
        self.tenants[event.tenant].would_fire += 1
        other = self._was.pop(event.identity, None)
        if other is None:
            self._would[event.identity] = event
        else:
            self._match(other, event)

    def end(self, refused: Mapping[str, int], would_refuse: Mapping[str, int]) -> None:
        """Both sides are at their end; so many requests were refused of each tenant."""
        self._match_by_number()
        for event in self._was.values():
            self.tenants[event.tenant].missing += 1
            self._show("missing", event, event.fired_ms, None)
        for event in self._would.values():
            self.tenants[event.tenant].new += 1
            self._show("new", event, None, event.fired_ms)
        self._was, self._would = {}, {}
        for name, count in refused.items():
            self.tenants[name].refused += count
        for name, count in would_refuse.items():
            self.tenants[name].would_refuse += count

    def _match_by_number(self) -> None:
        """Match the remaining events by schedule and occurrence, in the order of their fires."""
        left: defaultdict[tuple[str, str, int], deque[VirtualEvent]] = defaultdict(deque)
        for event in self._would.values():
            if event.occurrence >= 0:
                left[_number(event)].append(event)
        for event in list(self._was.values()):
            if others := left.get(_number(event)):
                other = others.popleft()
                del self._was[event.identity], self._would[other.identity]
                self._match(event, other)

    def _match(self, was: VirtualEvent, would: VirtualEvent) -> None:
        later_ms = would.fired_ms - was.fired_ms
        if not later_ms:
            return
        of_tenant = self.tenants[was.tenant]
        of_tenant.most_later_ms = max(of_tenant.most_later_ms, later_ms)
        kind = "later" if later_ms > 0 else "earlier"
        of_tenant.later += later_ms > 0
        of_tenant.earlier += later_ms < 0
        self._show(kind, was, was.fired_ms, would.fired_ms)

    def _show(
        self, kind: str, event: VirtualEvent, was_ms: int | None, would_ms: int | None
    ) -> None:
        if self._shown[event.tenant, kind] < MOST_EXAMPLES:
            self._shown[event.tenant, kind] += 1
            moved = MovedEvent(event.schedule_id, event.scheduled_at, was_ms, would_ms)
            self.tenants[event.tenant].examples.append(moved)


def _number(event: VirtualEvent) -> tuple[str, str, int]:
    return event.tenant, event.schedule_id, event.occurrence
