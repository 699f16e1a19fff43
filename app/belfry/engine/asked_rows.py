"""The row that a request asks for: its definition, its instants, and the row that it continues.

    request ─► rule (with the days of its calendar) ─► first instant ─► jitter ─► row

    new                         the first instant behind its arrival
    an import                   the instant and the number at which the exported schedule stood
    update of the trigger       as a new one, behind all that the rhythm of before has passed
    update of anything else     the instant and the number of the row that it replaces
    debounced                   as below

*Sliding* is the effect of a debouncing request on the pending schedule.  The waiting row keeps in
`accepted_ms` when the first request of the run came (`schedules/debounce.py`):

    delay 5 min, longest wait 12 min
    12:00  a   accepted 12:00   due 12:05
    12:03  b   accepted 12:00   due 12:08        another version of the same schedule
    12:09  c   …                                 12:08 has fired: c begins a run of its own
"""

from __future__ import annotations

from dataclasses import dataclass

from belfry.engine.at_rest import at_rest
from belfry.engine.calendars import Calendars
from belfry.engine.large_payloads import claimed, is_large
from belfry.engine.passed import nominal_at, passed_ms, reached_ms
from belfry.engine.step import Step
from belfry.schedules.debounce import slid_ms
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.request import TRACE_HEADERS, ExportedState, Request
from belfry.schedules.rule import (
    KINDS,
    ONE_SHOT,
    RECURRING,
    decode_rule,
    encode_rule,
    has_calendar,
    rule_of,
)
from belfry.schedules.triggers import trigger_of
from belfry.schedules.triggers.acknowledged import DEPENDING, FAR_MS
from belfry.store.layout.pending import KIND_CODES, Pending, encode_headers
from belfry.store.layout.pending_bytes import DEPENDS, PAUSED
from belfry.tenants.effective import Tenant
from belfry.wire.headers import TENANT
from belfry.wire.record import SourceRecord
from belfry.wire.retries import is_put_back


@dataclass(slots=True)
class Asked:
    """A valid request on its way to its verdict; `row` is the present row of its name.

    `generation` is that of the schedule (its life); a step that begins one sets it.  `accepted_ms`
    (epoch ms) is when the request arrived.
    """

    request: Request
    record: SourceRecord
    tenant: Tenant
    name: bytes
    row: bytes | None
    version: int
    generation: int | None
    accepted_ms: int


class AskedRows:
    """Makes the rows that requests ask for; `calendars` has the days of schedules.

    Without calendars no schedule is defined, as by a bulk job.
    """

    def __init__(self, calendars: Calendars | None) -> None:
        self._calendars = calendars

    def row(self, asked: Asked, life: int, version: int, passed_ms: int = 0) -> Pending:
        """The row that a request asks for; a rhythm begins after the passed instants of another."""
        request = asked.request
        rule = encode_rule(rule_of(request, self._days(request)))
        nominal_ms, when = self._instant(asked, rule, passed_ms)
        due_ms = nominal_ms + jitter_of(asked, nominal_ms)
        group, event_type = request["group"], request["event_type"]
        tenant, key, headers = asked.tenant.name_bytes, request["key"], b""
        if asked.record[4] or request["headers"]:
            key, headers = _own_key(asked), _headers(asked)
        row = Pending(
            due_ms,
            nominal_ms,
            asked.accepted_ms,
            asked.record[0],
            life,
            version,
            0,
            KIND_CODES[request["kind"]],
            when,
            request["jitter_ms"] or 0,
            tenant,
            asked.name[len(tenant) + 1 :],
            group.encode() if group else b"",
            event_type.encode() if event_type else b"",
            key,
            headers,
            rule,
            at_rest(request["payload"], asked.name, asked.tenant),
        )
        if asked.tenant.claims_over is None or not is_large(request["payload"], asked.tenant):
            return row
        return claimed(row)

    def passed_ms(self, old: Pending, step: Step) -> int:
        """The last instant that the former rhythm has passed, by whatever days of its calendar."""
        if self._calendars is None or not has_calendar(old.extra):
            return passed_ms(old, 0, reached_ms(step))
        return passed_ms(old, self._calendars.passed_ms(old, step), reached_ms(step))

    def _days(self, request: Request) -> bytes | None:
        """The days of the calendar that a request names, at rest."""
        name = request["calendar"]
        if name is None or self._calendars is None:
            return None
        return self._calendars.days_of(request["tenant"], name)

    def _instant(self, asked: Asked, rule: bytes, passed_ms: int) -> tuple[int, int]:
        """Nominal instant, and the part of it that the definition holds beside the rule."""
        if asked.request["kind"] in RECURRING:
            trigger = trigger_of(rule)
            first_ms = trigger.first_ms(max(asked.accepted_ms, passed_ms))
            if first_ms == passed_ms:
                # EVERY with a start counts the very instant, which another definition has passed.
                first_ms = trigger.first_ms(passed_ms + 1)
            if first_ms is None:
                first_ms = trigger.first_ms(asked.accepted_ms)
            standing = asked.request["standing"]
            if first_ms is None and standing is not None:
                # An imported schedule may have nothing before it but its last one, overdue.
                return standing["next_at"], 0
            assert first_ms is not None, "a rule that never fires is refused by the checks"
            return first_ms, 0
        kind = ONE_SHOT[asked.request["kind"]]
        return kind.first_ms(asked.request, asked.accepted_ms), kind.said_ms(asked.request)


def jitter_of(asked: Asked, nominal_ms: int) -> int:
    """By how much (ms) an instant of the schedule is put off."""
    most_ms = asked.request["jitter_ms"]
    return jitter_ms(asked.name, nominal_ms, most_ms) if most_ms else 0


def imported(asked: Asked, row: Pending, standing: ExportedState) -> Pending:
    """The row of a life that goes on where an exported one stood."""
    nominal_ms, number = nominal_at(row, standing["next_at"]), standing["occurrence"]
    due_ms = nominal_ms + jitter_of(asked, nominal_ms)
    return row._replace(
        due_ms=due_ms, nominal_ms=nominal_ms, version=standing["version"], occurrence=number
    )


def goes_on(old: Pending, row: Pending) -> bool:
    """Whether an update leaves the trigger as it was, so that cadence, count and pause stay."""
    if KINDS[old.kind] not in RECURRING:
        return old.once_as == row.once_as and dependence(old) == dependence(row)
    if old.kind != row.kind:
        return False
    trigger = trigger_of(row.extra)
    end_at = trigger.rule.end_at
    in_time = end_at is None or old.nominal_ms <= end_at
    return in_time and trigger.same_cadence(trigger_of(old.extra))


def dependence(row: Pending) -> tuple[str | None, int | None, int | None] | None:
    """The awaited schedule, the delay after its ACK, and the latest instant; None: no wait.

    `row` can be read by this release.
    """
    if KINDS[row.kind] not in DEPENDING:
        return None
    rule = decode_rule(row.extra)
    return rule.awaited, rule.ack_delay_ms, rule.latest_at


def first_flags(row: Pending, standing: ExportedState | None) -> int:
    """The flags of a schedule that begins, or whose trigger is another one.

    An imported one may be paused, and may have had the acknowledgement that it waits for.
    """
    flags = PAUSED if standing is not None and standing["paused"] else 0
    if KINDS[row.kind] not in DEPENDING:
        return flags
    latest_at = decode_rule(row.extra).latest_at or FAR_MS
    return flags | DEPENDS * (standing is None or standing["next_at"] == latest_at)


def slid(row: Pending, old: Pending | None, longest_ms: int) -> Pending:
    """The row that a debouncing request asks for, while `old` waits.

    `row` is the row that the request alone would give, `longest_ms` its `max_wait_ms`.  A new run
    begins, and `row` stays as it is, where `old` is None (it cannot be read) or does not debounce.
    """
    if old is None or not old.extra or trigger_of(old.extra).rule.max_wait_ms is None:
        return row
    nominal_ms = slid_ms(row.accepted_ms, row.when, old.accepted_ms, longest_ms)
    due_ms = nominal_ms
    if row.jitter_ms:
        due_ms += jitter_ms(row.name, nominal_ms, row.jitter_ms)
    return row._replace(due_ms=due_ms, nominal_ms=nominal_ms, accepted_ms=old.accepted_ms)


def _own_key(asked: Asked) -> bytes | None:
    """The key that a request asks for; of a record that is put back, without its tenant.

    A record of the topic that tenants share has the tenant before its key, which is added anew.
    """
    key, tenant, headers = asked.request["key"], asked.tenant, asked.record[4] or ()
    if key is None or not tenant.shared or not is_put_back(headers):
        return key
    whose = [value for name, value in headers if name == TENANT and value is not None]
    return key.removeprefix(tenant.key_of) if whose[-1:] == [tenant.name_bytes] else key


def _headers(asked: Asked) -> bytes:
    """The user's headers, and the trace that the request's own record carries."""
    headers = [(h["name"].encode(), h["value"]) for h in asked.request["headers"]]
    names = {name for name, _ in headers}
    for name, value in asked.record[4] or ():
        if name in TRACE_HEADERS and name.encode() not in names:
            headers.append((name.encode(), value))
    return encode_headers(headers)
