"""The changes that a declaration makes: the objects that differ, with their fields.

It is a function of four values: the declaration, the policies, the schedules as they stand, and the
record of the set. It neither reads nor writes.

    declared   stands              asked before   becomes
    yes        no                  no             CREATE
    yes        no, it has ended    the same       OVER: it has done its work
    yes        the same            -              UNCHANGED
    yes        otherwise           -              UPDATE, on the condition of this version
    no         yes, made by set    -              REMOVE, with --prune
    no         yes, by others      -              nothing

A delay (``in: 5m``) is not an instant, so an existing schedule cannot be compared with it: it is
the same if the digest of its definition is the recorded one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from belfry.declared.calendar_entries import DeclaredCalendar
from belfry.declared.declaration import Declaration
from belfry.declared.definition import TARGETS, definition, differing, standing_definition
from belfry.declared.policy_entries import KNOWN as POLICY_FIELDS
from belfry.declared.policy_entries import DeclaredPolicy
from belfry.declared.schedule_entries import DeclaredSchedule
from belfry.declared.set_record import Name, SetRecord
from belfry.schedules.identity import etag_of
from belfry.schedules.instants import format_instant
from belfry.schedules.masking import MASK, masked_target
from belfry.tenants.policy import TenantPolicy

# States of a schedule that is not over.
WAITING: Final = ("PENDING", "PAUSED")


class Alteration(StrEnum):
    """What happens to an object; OVER is one that has ended as it was meant to."""

    CREATE = "create"
    UPDATE = "update"
    REMOVE = "remove"
    UNCHANGED = "unchanged"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of an object: its present and its new value; None if it is not set."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Altered:
    """One object and what happens to it; `etag` is the version that was compared."""

    tenant: str
    schedule_id: str | None
    alteration: Alteration
    # Empty for an object that is removed or unchanged.
    fields: tuple[FieldDifference, ...] = ()
    etag: str | None = None
    policy: TenantPolicy | None = None
    schedule: DeclaredSchedule | None = None
    calendar: DeclaredCalendar | None = None

    @property
    def name(self) -> str:
        """How people call it."""
        if self.calendar is not None:
            return f"calendar {self.tenant}/{self.calendar.name}"
        if self.schedule_id is None:
            return f"policy {self.tenant}"
        return f"schedule {self.tenant}/{self.schedule_id}"

    @property
    def changes(self) -> bool:
        """Whether anything has to be written."""
        return self.alteration not in (Alteration.UNCHANGED, Alteration.OVER)


@dataclass(frozen=True, slots=True)
class Found:
    """The existing objects: policies by tenant, schedules as HTTP shows them, the set's record.

    `known` are tenants without a policy that may have schedules all the same.
    """

    policies: Mapping[str, TenantPolicy]
    schedules: Mapping[Name, Mapping[str, Any] | None]
    known: frozenset[str] = frozenset()
    record: SetRecord = field(default_factory=SetRecord)
    calendars: Mapping[Name, Mapping[str, Any] | None] = field(default_factory=dict)


def alterations(declared: Declaration, found: Found) -> list[Altered]:
    """The change of each declared object: policies first, then calendars, then schedules.

    Schedules that are declared have to be in `found.schedules`, with None for one that does not
    exist.
    """
    policies = [_policy(each, found) for each in declared.policies.values()]
    calendars = [_calendar(each, found) for each in declared.calendars.values()]
    schedules = [_schedule(each, found) for each in declared.schedules.values()]
    return policies + calendars + schedules


def removals(declared: Declaration, found: Found) -> list[Altered]:
    """Objects that the set has made, that still exist, and are no longer declared; schedules first.

    A calendar goes after the schedules that heed it, and a policy after all of its tenant, so that
    they are cancelled while it still counts.
    """
    return [
        *_old_schedules(declared, found),
        *_old_calendars(declared, found),
        *_old_policies(declared, found),
    ]


def _old_schedules(declared: Declaration, found: Found) -> Iterator[Altered]:
    for tenant, schedule_id in sorted(found.record.made - declared.schedules.keys()):
        stands = found.schedules.get((tenant, schedule_id))
        if stands is not None and stands["state"] in WAITING:
            yield Altered(tenant, schedule_id, Alteration.REMOVE, etag=etag_in(stands))


def _old_calendars(declared: Declaration, found: Found) -> Iterator[Altered]:
    for tenant, name in sorted(found.record.made_calendars - declared.calendars.keys()):
        stands = found.calendars.get((tenant, name))
        if stands is not None:
            shown = {each: stands[each] for each in ("days", "weekend", "source")}
            gone = DeclaredCalendar(tenant, name, **shown)
            yield Altered(tenant, None, Alteration.REMOVE, calendar=gone)


def _old_policies(declared: Declaration, found: Found) -> Iterator[Altered]:
    for tenant in sorted(found.record.made_policies - declared.policies.keys()):
        if tenant in found.policies:
            before = found.policies[tenant]
            yield Altered(tenant, None, Alteration.REMOVE, policy=before)


def _policy(declared: DeclaredPolicy, found: Found) -> Altered:
    """How a declared policy differs from the one that stands, or from the defaults."""
    tenant = declared.policy.tenant
    before = found.policies.get(tenant)
    after = declared.after(before, used=before is not None or tenant in found.known)
    shown_before = _shown_policy(before or TenantPolicy(tenant))
    shown_after = _shown_policy(after)
    # Over HTTP credentials are masked, so targets can be compared only by their shown parts.
    if before is not None and MASK in str(asdict(before)["http_targets"]):
        same_targets = shown_before[TARGETS] == shown_after[TARGETS]
    else:
        same_targets = before is not None and before.http_targets == after.http_targets
    fields = tuple(
        FieldDifference(name, shown_before[name], shown_after[name])
        for name in POLICY_FIELDS
        if (shown_before[name] != shown_after[name])
        or (name == TARGETS and before is not None and not same_targets)
    )
    kind = Alteration.CREATE if before is None else Alteration.UPDATE
    if before is not None and not fields:
        kind = Alteration.UNCHANGED
    return Altered(tenant, None, kind, fields, policy=after)


def _calendar(declared: DeclaredCalendar, found: Found) -> Altered:
    stands = found.calendars.get((declared.tenant, declared.name))
    fields = tuple(FieldDifference(*each) for each in declared.differing(stands or {}))
    kind = Alteration.CREATE if stands is None else Alteration.UPDATE
    if stands is not None and not fields:
        kind = Alteration.UNCHANGED
    return Altered(declared.tenant, None, kind, fields, calendar=declared)


def _schedule(declared: DeclaredSchedule, found: Found) -> Altered:
    """How a declared schedule differs from the existing one of its name."""
    name = (declared.tenant, declared.schedule_id)
    stands = found.schedules.get(name)
    same = found.record.asked.get(name) == declared.digest()
    if stands is None or stands["state"] not in WAITING:
        if same and declared.can_be_over:
            return Altered(*name, Alteration.OVER, schedule=declared)
        return Altered(*name, Alteration.CREATE, _fields_of(declared), schedule=declared)
    wanted = definition(declared.request)
    live = standing_definition(*name, stands)
    differ = differing(wanted, live, same_delay=declared.is_relative and same)
    kind = Alteration.UPDATE if differ else Alteration.UNCHANGED
    fields = tuple(
        FieldDifference(each, _shown(each, live[each]), _shown(each, wanted[each]))
        for each in differ
    )
    return Altered(*name, kind, fields, etag_in(stands), schedule=declared)


def _fields_of(declared: DeclaredSchedule) -> tuple[FieldDifference, ...]:
    """All fields of a schedule that is to be created."""
    return tuple(
        FieldDifference(name, None, _shown(name, value))
        for name, value in definition(declared.request).items()
        if value is not None
    )


def etag_in(stands: Mapping[str, Any]) -> str:
    """The etag of a schedule that HTTP shows."""
    return etag_of(stands.get("generation"), stands["version"]) or ""


def _shown_policy(policy: TenantPolicy) -> dict[str, Any]:
    """A policy's fields as they may be shown: credentials of targets are not."""
    found = asdict(policy)
    found[TARGETS] = [masked_target(each) for each in found[TARGETS]]
    return found


def _shown(name: str, value: Any) -> Any:
    """A field as it may be shown."""
    if name == TARGETS and value:
        return [masked_target(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if name in ("at", "start_at", "end_at") and value is not None:
        return format_instant(value)
    if name == "headers" and value:
        return [[each["name"], _shown("value", each["value"])] for each in value]
    return value
