"""Refusals, kept from flooding the log: the first few of a kind in full, then one sum per interval.

    |-- interval ------------------|-- interval ----
    r r r . . . . . . . . . . . .  S(12) r r ...
    in full    counted only        "count: 12"

A kind is a caller, or the address of an unknown caller, with a status and a code.  The number of
kinds in an interval is limited; refusals beyond the limit count as one kind. Callers and strangers
have limits of their own, so that a flood of made-up tokens from many addresses hides no caller that
exceeds its rights.

At most ``2 * (most + 1) * (first + 1)`` events leave in an interval, whatever comes.  With the
defaults (3 in full, 200 kinds, a minute) that is 1 608, and each refusal is counted in one of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from belfry.wire.audit import AuditEvent

FIRST: Final = 3
MOST_KINDS: Final = 200
INTERVAL_MS: Final = 60_000


class RefusalKind(NamedTuple):
    """The key by which refusals are summed up; `known` says whether the caller is known.

    `who` is the caller's name, or the address of an unknown caller; it is empty, with status 0, for
    all refusals beyond the limit of kinds.
    """

    known: bool
    who: str
    status: int
    code: str


class _Sum:
    """Refusals of one kind within one interval."""

    __slots__ = ("event", "held_back", "since_ms", "written")

    def __init__(self, event: AuditEvent, since_ms: int) -> None:
        self.event = event
        self.since_ms = since_ms
        self.written = 0
        self.held_back = 0


class Refusals:
    """Lets the first refusals of a kind through and sums up the others; its owner has a lock."""

    def __init__(
        self, first: int = FIRST, most_kinds: int = MOST_KINDS, interval_ms: int = INTERVAL_MS
    ) -> None:
        self._first = first
        self._most = most_kinds
        self._interval_ms = interval_ms
        self._sums: dict[RefusalKind, _Sum] = {}
        self._kinds = {True: 0, False: 0}

    def take(self, event: AuditEvent) -> AuditEvent | None:
        """The event, if it is to be written in full; None where it was only counted.

        Instants are those of the events (epoch ms), so tests need no clock.
        """
        kind = self._kind(event)
        found = self._sums.get(kind)
        if found is None:
            found = self._sums[kind] = _Sum(event, event.at)
            self._kinds[kind.known] += 1
        if found.written < self._first:
            found.written += 1
            return event
        found.held_back += 1
        return None

    def over(self, now_ms: int, *, ending: bool = False) -> list[AuditEvent]:
        """Sums of the intervals that are over by now; with `ending` all sums.

        An interval begins with the first refusal of its kind, so kinds end at different times and
        their sums do not come all at once.
        """
        done = [
            (kind, each)
            for kind, each in self._sums.items()
            # Where the clock was set back, the sum must not wait until it catches up.
            if ending or not 0 <= now_ms - each.since_ms < self._interval_ms
        ]
        for kind, _ in done:
            del self._sums[kind]
            self._kinds[kind.known] -= 1
        return [_summary(kind, each, now_ms) for kind, each in done if each.held_back]

    def _kind(self, event: AuditEvent) -> RefusalKind:
        known = bool(event.caller)
        who = event.caller if known else event.source_address or ""
        kind = RefusalKind(known, who, event.status or 0, event.code or "")
        if kind in self._sums or self._kinds[known] < self._most:
            return kind
        return RefusalKind(known, "", 0, "")


def _summary(kind: RefusalKind, found: _Sum, now_ms: int) -> AuditEvent:
    """One event for many: their common fields, and their number."""
    shared = found.event if kind.status else replace(found.event, status=None, code=None)
    mixed = None if kind.status else "others"
    return replace(
        shared,
        at=now_ms,
        action="refusals",
        caller=kind.who if kind.known else "",
        role=shared.role if kind.who else None,
        source_address=kind.who if kind.who and not kind.known else None,
        tenant=None,
        object=None,
        request_id=None,
        trace_id=None,
        outcome=mixed,
        count=found.held_back,
        objects=(),
        changes=(),
    )
