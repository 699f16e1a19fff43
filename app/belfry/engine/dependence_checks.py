"""Whether a schedule may wait for the one that its request names: asked of the state at intake.

    its tenant is spread                no: an acknowledgement is seen in one partition
    as many wait for that one           no
    AFTER_ACK of what nobody            no, unless `latest_at` says by when it fires all the same
      would acknowledge
    x after y, y after z, z after x     no

    z waits for y ─► y waits for x ─► x is due at 12:00          asked for in this order of arrows:
    x after z: circular_wait, for the way from z leads to x      x first, then y, then z

A group may be empty: then all of it are acknowledged.  Checks of the request alone, such as of a
name that is too long, are in `triggers/acknowledged.py`.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.asked_rows import Asked
from belfry.engine.dependents import MOST_WAITING
from belfry.engine.locks import Lock
from belfry.engine.reply import Reply
from belfry.engine.waiting import Waiting
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import awaits, rule_of
from belfry.schedules.triggers.acknowledged import AFTER_ACK
from belfry.store.layout.dependence import dependence_in, dependence_of
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending import decode_pending
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore

# Schedules of which each waits for the next.
LONGEST_CHAIN: Final = 32


class DependenceChecks:
    """Judges requests of one partition by its state."""

    def __init__(self, store: ScheduleStore, waiting: Waiting) -> None:
        self._store = store
        self._locks, self._dependents = waiting.locks, waiting.dependents

    def problem(self, asked: Asked) -> Reply | None:
        """Why a schedule may not wait for the one that its request names, or None."""
        request, tenant = asked.request, asked.tenant
        if tenant.spread > 1:
            return _refused(
                "wait_of_spread_tenant",
                f"Tenant {tenant.name} is spread over {tenant.spread} shards, and an"
                " acknowledgement is seen on one: say when it is due, or give both schedules"
                " another tenant.",
            )
        rule = rule_of(request)
        lock = Lock(tenant.name_bytes, dependence_in(rule))
        if self._dependents.is_full(lock, asked.name):
            return _refused(
                "too_many_waiting",
                f"{MOST_WAITING} schedules wait for {rule.awaited!r} already: let one of them wait"
                " for it, and the others for that one.",
            )
        if request["kind"] != AFTER_ACK.name or request["standing"] is not None:
            return None
        assert rule.awaited is not None, "a checked request names whom it waits for"
        whom = rule.awaited.encode()
        unknown = None if rule.latest_at is not None else self._unknown(tenant.name_bytes, whom)
        return unknown or self._circular(asked, whom)

    def _unknown(self, tenant: bytes, whom: bytes) -> Reply | None:
        """The reply where nobody could acknowledge a schedule, or None."""
        if self._locks.awaits_fire_of(tenant, whom):
            return None
        record = self._pending(tenant + b"/" + whom)
        if record is not None and (why_unreadable(record) or awaits(decode_pending(record).extra)):
            return None
        name = whom.decode(errors="replace")
        why = (
            f"Schedule {name!r} does not exist, or is over"
            if record is None
            else (f"Schedule {name!r} asks for no acknowledgement (serial, concurrency or overlap)")
        )
        return _refused(
            "unknown_awaited",
            f"{why}: nobody would acknowledge it. Ask for that one first, or say latest_at, by"
            " which this one fires all the same.",
        )

    def _circular(self, asked: Asked, whom: bytes) -> Reply | None:
        """The reply where a schedule waits for itself by way of others, or None."""
        tenant = asked.tenant.name_bytes
        name = tenant + b"/" + whom
        for _ in range(LONGEST_CHAIN):
            if name == asked.name:
                break
            record = self._pending(name)
            if record is None or decode_pending(record).kind != AFTER_ACK.code:
                return None
            name = tenant + b"/" + dependence_of(record)[1:]
        return _refused(
            "circular_wait",
            f"By way of {whom.decode(errors='replace')!r} it would wait for itself, or for a chain"
            f" of more than {LONGEST_CHAIN} schedules: let it wait for another one.",
        )

    def _pending(self, name: bytes) -> bytes | None:
        row = self._store.named(name)
        waits = row is not None and is_location(row)
        return self._store.pending_at(name, row) if row is not None and waits else None


def _refused(code: str, reason: str) -> Reply:
    return Reply(Outcome.REJECTED, code=code, reason=reason)
