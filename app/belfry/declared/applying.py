"""One apply: a declaration is made true, object by object, and the set's record follows.

    record: planned objects ─► policies ─► calendars ─► schedules ─► removals
                                                    record: made objects ◄───┘

The record comes first, so that an apply that dies half-way leaves no object that a later one does
not know. A failure of one object is told, and the others go on. Two applies of one set at a time
cannot both write the record: the second stops before it changes anything.

    12:00:00.000  record, version 7: a, b                                the last apply's
    12:00:01.000  record, version 8: a, b, c                             c is about to be made
    12:00:01.100  c is created
    12:00:01.200  killed
    12:05:00.000  apply of files without c, with --prune: c is in the record, so c is removed

Without the first record c would look like a schedule of somebody else, and would stay for ever.

It runs in the thread of the caller, and waits there while policies come into effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from belfry.client.errors import BelfryError
from belfry.client.portable import request_fields
from belfry.declared.declaration import Declaration
from belfry.declared.difference import WAITING, Alteration, Altered, Found, etag_in
from belfry.declared.set_record import DUE, RECORDS, Name, SetRecord, record_of_set
from belfry.declared.ways import ScheduleWrite, Ways, as_write, write_of

# Workers follow the topic of policies, which are in effect within two seconds.
IN_EFFECT_S: Final = 3.0


class NotRecorded(BelfryError):
    """The record of a set could not be written, so no object was changed."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result for one object; `problem` says why it failed."""

    altered: Altered
    problem: str | None = None


def record_id(declared: Declaration) -> str:
    """The id of the schedule that keeps the record of the set."""
    return RECORDS + declared.name


def record_in(shown: Mapping[str, Any] | None) -> SetRecord:
    """The record that a schedule keeps; an empty one where it does not stand."""
    if shown is None or shown["state"] not in WAITING:
        return SetRecord()
    return record_of_set(shown.get("payload_text") or "")


class Applying:
    """One apply of a declaration that was compared with what was `found`.

    `applied_by` is told in the record for people; `pause` waits for so many seconds. An object is
    for one `run`.
    """

    def __init__(
        self,
        declared: Declaration,
        found: Found,
        ways: Ways,
        applied_by: str,
        pause: Callable[[float], None],
    ) -> None:
        self._declared, self._found, self._ways = declared, found, ways
        self._applied_by, self._pause = applied_by, pause
        self._written = found.record
        self._record = found.record.copy()

    def run(self, altered: Sequence[Altered], removed: Sequence[Altered]) -> Iterator[Done]:
        """Write the differences, and remove; the result of each, in the order of its writing.

        Raises `NotRecorded` before anything is removed and before any schedule is written.
        """
        calendars = [each for each in altered if each.calendar is not None]
        policies = [each for each in altered if each.policy is not None]
        schedules = [each for each in altered if each.schedule_id is not None]
        # Where tenants without a policy are not served, the record waits for its tenant's policy.
        first = [each for each in policies if each.tenant == self._declared.kept_in]
        asks = any(each.changes for each in [*calendars, *schedules, *removed])
        makes = any(each.alteration is Alteration.CREATE for each in altered)
        yield from self._policies(first, wait=asks or makes)
        self._announce(altered)
        others = [each for each in policies if each not in first]
        yield from self._policies(others, wait=asks)
        for each in calendars:
            wanted = each.calendar if each.changes else None
            yield Done(each, None if wanted is None else self._ways.set_calendar(wanted))
        yield from self._schedules(schedules)
        yield from self._schedules([each for each in removed if each.schedule_id is not None])
        for each in removed:
            if each.calendar is not None:
                yield self._noted(each, self._ways.remove_calendar(each.calendar))
            elif each.policy is not None:
                yield self._noted(each, self._ways.remove(each.policy))
        self._keep()

    def _policies(self, policies: Sequence[Altered], *, wait: bool) -> Iterator[Done]:
        """Write policies that differ; with `wait` give workers the time to follow them."""
        changing = [each for each in policies if each.changes]
        problems = self._ways.put([each.policy for each in changing if each.policy is not None])
        if changing and wait:
            self._pause(IN_EFFECT_S)
        for each, problem in zip(changing, problems, strict=True):
            yield self._noted(each, problem)
        yield from (self._noted(each, None) for each in policies if not each.changes)

    def _schedules(self, schedules: Sequence[Altered]) -> Iterator[Done]:
        """Write schedules that differ, or cancel those that go."""
        changing = [each for each in schedules if each.changes]
        if changing:
            problems = self._ways.write([write_of(each) for each in changing])
            for each, problem in zip(changing, problems, strict=True):
                yield self._noted(each, problem)
        yield from (self._noted(each, None) for each in schedules if not each.changes)

    def _noted(self, each: Altered, problem: str | None) -> Done:
        """Note the made and removed objects in the record."""
        record, name = self._record, (each.tenant, each.schedule_id or "")
        removed = each.alteration is Alteration.REMOVE
        if removed and problem is None:
            record.made.discard(name)
            if each.calendar is not None:
                record.made_calendars.discard((each.tenant, each.calendar.name))
            if each.policy is not None:
                record.made_policies.discard(each.tenant)
        if each.schedule_id is not None:
            record.asked.pop(name, None)
        if each.schedule is not None and problem is None:
            record.asked[name] = each.schedule.digest()
        return Done(each, problem)

    def _announce(self, altered: Sequence[Altered]) -> None:
        """Record the planned objects, before they are made."""
        for each in altered:
            if each.alteration is not Alteration.CREATE:
                continue
            if each.policy is not None:
                self._record.made_policies.add(each.tenant)
            elif each.calendar is not None:
                self._record.made_calendars.add((each.tenant, each.calendar.name))
            elif each.schedule_id is not None:
                self._record.made.add((each.tenant, each.schedule_id))
        self._keep(only_made=True)

    def _keep(self, *, only_made: bool = False) -> None:
        """Write the record if it differs from the written one."""
        record, before = self._record, self._written
        if not only_made:
            # An object that is neither declared any more nor made by the set is not its concern.
            self._forget_what_is_gone()
            known = record.made | self._declared.schedules.keys()
            record.asked = {name: text for name, text in record.asked.items() if name in known}
        if _made(record) == _made(before) and (only_made or record.asked == before.asked):
            return
        shown = self._ways.look(self._declared.kept_in, record_id(self._declared))
        problem: str | None = "another apply of this set has changed it meanwhile: apply again"
        if record_in(shown) == before:
            problem = next(iter(self._ways.write([self._record_write(shown)])))
        if problem is not None:
            what = f"{self._declared.kept_in}/{record_id(self._declared)}"
            raise NotRecorded(f"The record of the set ({what}) was not written: {problem}")
        self._written = record.copy()

    def _forget_what_is_gone(self) -> None:
        """Drop objects that are no longer declared, and that others have ended or removed."""
        declared, found, record = self._declared, self._found, self._record
        record.made_policies &= declared.policies.keys() | found.policies.keys()
        there = {name for name, shown in found.calendars.items() if shown is not None}
        record.made_calendars &= declared.calendars.keys() | there
        standing = {
            name
            for name, shown in found.schedules.items()
            if shown is not None and shown["state"] in WAITING
        }
        record.made &= declared.schedules.keys() | standing

    def _record_write(self, shown: Mapping[str, Any] | None) -> ScheduleWrite:
        """The request that writes the record, if it was not written meanwhile."""
        stands = shown is not None and shown["state"] in WAITING
        text = self._record.payload(self._declared.name, self._applied_by)
        json = {"kind": "AT", "at": DUE, "payload_text": text}
        who = {"tenant": self._declared.kept_in, "schedule_id": record_id(self._declared)}
        asked = request_fields({**who, **json})
        etag = etag_in(shown) if stands and shown is not None else None
        return as_write("UPSERT" if stands else "CREATE", asked, json, etag)


def _made(record: SetRecord) -> tuple[set[Name], set[str], set[Name]]:
    """The objects that the set has made, according to its record."""
    return record.made, record.made_policies, record.made_calendars
