"""How an apply reads and writes objects: the ways of its caller, and the requests for them.

An apply knows neither Kafka nor HTTP. It asks for a *look* at a schedule, and hands over what is to
be *written*; the caller's `Ways` do both, one after the other, and say of each why it failed:

    Applying ── write([CREATE a, UPSERT b, CANCEL c]) ──► Ways ──► None, "b has changed", None

A `ScheduleWrite` holds the same request twice, as a record for Kafka and as JSON for HTTP. Its
condition, the version at which the schedule was compared, stands in the record and is an etag for
HTTP. `belfry.cli.applied` has the real ways, and tests have dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from belfry.client.requests import request
from belfry.declared.calendar_entries import DeclaredCalendar
from belfry.declared.difference import Alteration, Altered
from belfry.schedules.identity import expected_from
from belfry.tenants.policy import TenantPolicy


@dataclass(frozen=True, slots=True)
class ScheduleWrite:
    """One request about a schedule, as Kafka and as HTTP take it; `etag` is the version read."""

    # CREATE, UPSERT or CANCEL.
    action: str
    # All fields of a `ScheduleRequest`, for Kafka; `json` has the same for HTTP.
    request: dict[str, Any]
    json: dict[str, Any]
    etag: str | None

    @property
    def name(self) -> tuple[str, str]:
        """The tenant and the id."""
        return self.request["tenant"], self.request["schedule_id"]


class Ways(Protocol):
    """How objects are reached; a problem is told as a sentence, and None is a success."""

    def look(self, tenant: str, schedule_id: str) -> Mapping[str, Any] | None:
        """A schedule as HTTP shows it, or None if there is no such schedule."""

    def put(self, policies: Sequence[TenantPolicy]) -> list[str | None]:
        """Write policies; for each, in order, why it was not written."""

    def remove(self, policy: TenantPolicy) -> str | None:
        """Forget a policy."""

    def set_calendar(self, calendar: DeclaredCalendar) -> str | None:
        """Set the days of a calendar."""

    def remove_calendar(self, calendar: DeclaredCalendar) -> str | None:
        """Forget a calendar."""

    def write(self, writes: Sequence[ScheduleWrite]) -> Iterator[str | None]:
        """Ask for schedules, in their order; for each why it was refused."""


def write_of(each: Altered) -> ScheduleWrite:
    """The request that makes a schedule as declared, or cancels it."""
    if each.schedule is None:
        asked = request(each.tenant, each.schedule_id or "", "CANCEL", {})
        return as_write("CANCEL", asked, {}, each.etag)
    action = "CREATE" if each.alteration is Alteration.CREATE else "UPSERT"
    return as_write(action, each.schedule.request, each.schedule.json, each.etag)


def as_write(
    action: str, asked: dict[str, Any], json: dict[str, Any], etag: str | None
) -> ScheduleWrite:
    """A write whose condition stands in the request, and as an etag for HTTP."""
    expected = None if etag is None else expected_from(etag)
    return ScheduleWrite(
        action, {**asked, "action": action, "expected_version": expected}, json, etag
    )
