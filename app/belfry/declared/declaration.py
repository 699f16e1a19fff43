"""A set of objects that files declare: policies, calendars and schedules of tenants.

    set: shop                 # names the set
    kept_in: shop             # the tenant that keeps the record of the set's objects
    tenants:
      shop:
        policy: {delivery: ENVELOPE, max_pending: 100000}
        calendars: {de: {country: DE-BY, years: [2026, 2030], weekend: [SAT, SUN]}}
        schedules:
          report/daily: {cron: "0 9 * * MON-FRI", timezone: Europe/Paris, payload: report}

Several files, and several documents of one, are one set; each says whose. An object stands in one
place only, for otherwise it would not be clear which one counts.

All mistakes are gathered, each with file and line, before anything is refused: `belfry.yaml:7:
shop/report/daily.cron: …`. Reading is pure, and judges no schedule by the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from belfry.declared.calendar_entries import DeclaredCalendar, Importing, Years, declared_calendar
from belfry.declared.policy_entries import DeclaredPolicy, declared_policy
from belfry.declared.schedule_entries import DeclaredSchedule, declared_schedule
from belfry.declared.set_record import RECORDS
from belfry.declared.yaml_lines import Complaints, Entry, documents, unknown
from belfry.schedules.request import schedule_id_problem, tenant_problem

_TOP: Final = ("set", "kept_in", "tenants")
_TENANT: Final = ("policy", "calendars", "schedules")


@dataclass(slots=True)
class Declaration:
    """All objects of a set: policies by tenant, calendars and schedules by tenant and name.

    `name` is that of the set, and `kept_in` the tenant whose schedule holds its record.
    """

    name: str = ""
    kept_in: str = ""
    policies: dict[str, DeclaredPolicy] = field(default_factory=dict)
    calendars: dict[tuple[str, str], DeclaredCalendar] = field(default_factory=dict)
    schedules: dict[tuple[str, str], DeclaredSchedule] = field(default_factory=dict)


def nothing_imported(_file: str, kind: str, which: str, _years: Years) -> tuple[list[str], str]:
    """Days off are written in the files alone; ValueError says so."""
    raise ValueError(f"has the {kind} {which}, and days are imported by belfry apply alone")


def declaration(
    files: Iterable[tuple[str, str]], importing: Importing = nothing_imported
) -> Declaration:
    """The declaration in files (name and text); `BadDeclaration` tells all their mistakes.

    Names of files are for messages alone. No document at all is a mistake, so that an empty folder
    with --prune does not remove everything.  `importing` finds the days of countries and files.
    """
    reading = _Reading(importing)
    for file, text in files:
        for document in documents(file, text, reading.complaints):
            reading.document(document)
    if not reading.documents and not reading.complaints.lines:
        reading.complaints.lines.append("no document declares anything: give set and kept_in")
    reading.complaints.check()
    return reading.found


class _Reading:
    """Documents that are read one after the other into one declaration."""

    def __init__(self, importing: Importing) -> None:
        self.found = Declaration()
        self._importing = importing
        self.complaints = Complaints()
        self.documents = 0
        self._places: dict[tuple[str, ...], Entry] = {}

    def document(self, at: Entry) -> None:
        """Read one document; an empty one is allowed."""
        if at.is_empty:
            return
        self.documents += 1
        parts = {each.name: each for each in at.entries(self.complaints, "document")}
        for name, each in parts.items():
            if name not in _TOP:
                self.complaints.add(each, name, unknown(name, _TOP))
        if at.is_mapping:
            self._head(at, parts)
        if "tenants" in parts:
            for tenant in parts["tenants"].entries(self.complaints, "tenants"):
                self._tenant(tenant)

    def _head(self, at: Entry, parts: dict[str, Entry]) -> None:
        """Take the names of the set and of its keeper, the same in all documents."""
        for name, attribute in (("set", "name"), ("kept_in", "kept_in")):
            if name not in parts:
                self.complaints.add(at, name, "is missing: every document says whose set it is")
                continue
            node = parts[name].node
            value = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
            wrong = tenant_problem(value)
            before = getattr(self.found, attribute)
            if wrong is not None:
                self.complaints.add(parts[name], name, f"is no name: {wrong.reason}")
            elif before and before != value:
                self.complaints.add(parts[name], name, f"is {value!r}, and was {before!r} before")
            setattr(self.found, attribute, value)

    def _tenant(self, at: Entry) -> None:
        """Take the declared objects of one tenant."""
        tenant = str(at.name)
        wrong = tenant_problem(tenant)
        if wrong is not None:
            self.complaints.add(at, f"tenants.{tenant}", wrong.reason)
            return
        for each in at.entries(self.complaints, tenant):
            if each.name == "policy":
                self._policy(tenant, each)
            elif each.name == "calendars":
                for calendar in each.entries(self.complaints, f"{tenant}.calendars"):
                    self._calendar(tenant, calendar)
            elif each.name == "schedules":
                for schedule in each.entries(self.complaints, f"{tenant}.schedules"):
                    self._schedule(tenant, schedule)
            else:
                self.complaints.add(each, f"{tenant}.{each.name}", unknown(each.name, _TENANT))

    def _policy(self, tenant: str, at: Entry) -> None:
        """Take a tenant's policy."""
        path = f"{tenant}.policy"
        if self._is_first(at, path, (tenant,)):
            found = declared_policy(tenant, at, path, self.complaints)
            if found is not None:
                self.found.policies[tenant] = found

    def _calendar(self, tenant: str, at: Entry) -> None:
        name = str(at.name)
        if self._is_first(at, f"{tenant}.calendars.{name}", (tenant, "calendar", name)):
            found = declared_calendar(at, (tenant, name), self.complaints, self._importing)
            if found is not None:
                self.found.calendars[tenant, name] = found

    def _schedule(self, tenant: str, at: Entry) -> None:
        """Take one schedule; ids of records cannot be declared."""
        name, path = str(at.name), f"{tenant}/{at.name}"
        wrong = schedule_id_problem(name)
        if wrong is not None:
            self.complaints.add(at, path, wrong.reason)
        elif name.startswith(RECORDS):
            self.complaints.add(at, path, f"ids that begin with {RECORDS} are records of sets")
        elif self._is_first(at, path, (tenant, name)):
            found: Any = declared_schedule(at, (tenant, name), self.complaints)
            if found is not None:
                self.found.schedules[tenant, name] = found

    def _is_first(self, at: Entry, path: str, key: tuple[str, ...]) -> bool:
        """Whether an object was not declared before; a second place is a complaint."""
        before = self._places.setdefault(key, at)
        if before is not at:
            there = f"{before.file}:{before.line}"
            self.complaints.add(at, path, f"is declared in {there} already")
        return before is at
