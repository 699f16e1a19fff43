"""Occurrences: one due row of a schedule fires, is judged late, or is held; and its successor.

    due row ─► understood? ─► in time?  ── fires ──────────────► next occurrence, in the same step
                 │ no           │ late                              │    └ none left: a marker
                 └ held, paused ├ FIRE_ONCE   the last late one ────┤
                                ├ SKIP        none fires ───────────┤
                                └ FIRE_ALL    joins the catch-up    │
                                              queue of its tenant   └► row of the same name

A row that is in time and has no rule takes `Fires.fire_once`; one that has a rule comes here, and
fires (`fires.py`) unless it has to be judged (`judging.py`).  Its successor is looked at in the
same way until it is due later, so a schedule of each second makes up for a slow step at once.

A row that this version cannot understand is held behind a lock of its own and told of: to fire it
would be a guess, and to stop for it would stop every tenant of the partition.  So is one whose
payload still lies in a day file (`day_files.py`), until that is read, and one amid which the step
has failed (`culprits.py`), until there is a new owner.  A schedule whose payload cannot be
decrypted is paused and told of: RESUME lets it fire once its key is there again.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.calendar_followers import OUTCOME_BYTES
from belfry.engine.changes import Changes
from belfry.engine.compiled_rule import CompiledRule, compiled
from belfry.engine.culprits import DUE, Culprits
from belfry.engine.day_files import hold_away
from belfry.engine.emit import Route, told
from belfry.engine.fires import Fires
from belfry.engine.judging import Judgement
from belfry.engine.locks import unreadable_lock
from belfry.engine.payloads import CODE, decrypted
from belfry.engine.queues import Turn
from belfry.engine.step import Step
from belfry.engine.unforeseen import tell
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import generation_of
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.day_reference import DayFile
from belfry.store.layout.pending import Away, Encrypted, Pending
from belfry.store.layout.pending_bytes import fires_once, has_rule
from belfry.store.readable import UNREADABLE, why_unreadable
from belfry.tenants.effective import Tenant
from belfry.tenants.payload_keys import Undecryptable

# Occurrences of one schedule that leave in one step: an interval may be shorter than a step.
MOST_AT_ONCE: Final = 100


class Occurrences:
    """Lets due rows of one partition leave that were taken from their place."""

    def __init__(
        self,
        waiting: Waiting,
        changes: Changes,
        fires: Fires,
        judgement: Judgement,
        awaited: dict[DayFile, None],
        culprits: Culprits,
    ) -> None:
        """`awaited` is told of day files that something due waits for."""
        self._culprits = culprits
        self._awaited = awaited
        self._waiting = waiting
        self._changes = changes
        self.fires = fires
        self.judgement = judgement
        # By the bytes that lie in records, with the part that `compiled` cuts off; of this step
        # alone.
        self._rules: dict[bytes, CompiledRule] = {}

    def begin(self, step: Step) -> None:
        """A step fires."""
        self._rules.clear()
        self.judgement.begin(step)

    def leave(self, row: Pending, record: bytes, place_ms: int, route: Route, step: Step) -> None:
        """Fire a row that has a rule, or judge it, and keep its successor.

        Its place may be later than its due instant: that of the last of a run, which fires for it.
        """
        if not row.extra and fires_once(record):
            self._leave_plain(row, record, route, step)
            return
        zones = self._changes.zones.under_way
        followed = self.followed(row, record, route.tenant, step, zones=zones)
        if followed is None:
            return
        row, record, rule = followed
        if rule.level:
            self._waiting.levels.note_use(row.tenant)
        for _ in range(MOST_AT_ONCE):
            in_time = step.now_ms - row.due_ms <= rule.limit_ms and place_ms == row.due_ms
            if in_time and rule.simple:
                following = self.fires.fire(row, record, rule, route, step)
            else:
                following = self.judgement.occur((row, record, place_ms), rule, route, step)
            if following is None:
                return
            due_ms, nominal_ms, occurrence, record = following
            row = row.following(due_ms, nominal_ms, occurrence)
            if due_ms > step.now_ms or row.group:
                # The clock went back, and it waits for the instant to come again; or those of its
                # group that are due between the two come first.
                self._waiting.hold_again(row, record)
                return
            if step.effects.room <= 0 or step.time_is_up():
                break
        step.set_aside.append((row, record))

    def _leave_plain(self, row: Pending, record: bytes, route: Route, step: Step) -> None:
        """Fire a one-shot without a rule whose payload may be encrypted, or in a day file."""
        if type(row.payload) is Away:
            hold_away(row, record, self._waiting, self._awaited, step)
            return
        plain = self._decrypted(row, record, route.tenant, step)
        if plain is not None:
            self.fires.fire_once(plain, route, step)

    def _rule_of(self, row: Pending, record: bytes) -> CompiledRule | None:
        """The compiled rule; None where this version cannot fire the schedule."""
        extra = row.extra
        if not extra or not has_rule(record):
            return None
        rule = self._rules.get(extra)
        if rule is not None:
            return rule
        try:
            rule = self._rules[extra] = compiled(extra)
        except UNREADABLE:
            return None
        return rule

    def followed(
        self, row: Pending, record: bytes, tenant: Tenant, step: Step, *, zones: bool = False
    ) -> tuple[Pending, bytes, CompiledRule] | None:
        """A row that was taken from its place, by the days (and the zones) of now; and its rule.

        Its payload is decrypted, that of the record is not.  None if it does not fire now, as a row
        that this version cannot fire is held back.
        """
        rule = self._rule_of(row, record)
        if rule is None:
            self._hold_unreadable(row, record, step)
            return None
        if zones or rule.calendar is not None:
            follow = self._changes.followed if zones else self._changes.by_calendar
            found = follow(row, record, rule, step)
            if found is None:
                return None
            if found[0].extra != row.extra:
                rule = compiled(found[0].extra)
            row, record = found
        plain = self._decrypted(row, record, tenant, step)
        return None if plain is None else (plain, record, rule)

    def _decrypted(self, row: Pending, record: bytes, tenant: Tenant, step: Step) -> Pending | None:
        """The row with its payload as it fires; None where it is paused, for nobody can read it."""
        if type(row.payload) is not Encrypted:
            return row
        try:
            return decrypted(row, tenant.name, tenant.payload_keys)
        except Undecryptable as error:
            kept = self._waiting.pause(row, record)
            step.effects.room -= len(kept) + OUTCOME_BYTES
            step.effects.moved = True
            step.effects.unreadable.append((row.name, str(error)))
            step.effects.outcomes[Outcome.PAUSED] += 1
            event = told(row, tenant, Outcome.PAUSED, step.now_ms)
            event.code, event.reason = CODE, f"{error}. RESUME lets it fire then"
            event.generation = generation_of(row.life)
            step.effects.lifecycle.append(event)
            return None

    def _hold_unreadable(self, row: Pending, record: bytes, step: Step) -> None:
        why = why_unreadable(record)
        assert why, f"{row.name!r} can be read, and has no rule"
        self._waiting.locks.hold(unreadable_lock(row), row, record)
        step.effects.unreadable.append((row.name, why))
        step.effects.moved = True

    def hold_failed(self, row: Pending, record: bytes, step: Step) -> bool:
        """Hold a row back amid which the step has failed before; whether it has.

        Its place is the row's due instant.  The next owner tries anew.
        """
        fault = self._culprits.of(DUE, record)
        if fault is None:
            return False
        self._waiting.locks.hold_failed(row, record)
        step.effects.unreadable.append((row.name, f"what fires it ended in {fault.kind}"))
        step.effects.moved = True
        tell(fault, step)
        return True

    def has_to_slow(self, row: Pending, record: bytes, turn: Turn, step: Step) -> bool:
        """Whether a row of a backlog, and all that lies behind it, waits for the rate."""
        if self.judgement.rate.left or not row.group:
            return False
        rule = self._rule_of(row, record)
        return rule is not None and self.judgement.has_to_slow(row, rule, turn, step)
