"""The record of a set: objects that its applies have made, with digests of the requests.

It is the payload of a schedule of the tenant that the file names (`kept_in`), under an id of its
own, due in 2100.  Neither a policy nor a schedule has a field for such a mark.  As a schedule the
record lies in the changelog, is written in transactions with a version that two applies cannot both
change, needs no rights but those to write schedules, and travels with backups.

`made` are objects that an apply has created: those alone may be pruned. Objects that existed before
always stay. `asked` are digests by which an apply knows a schedule that has ended since: it is not
made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from belfry.declared.yaml_lines import BadDeclaration

RECORDS: Final = "belfry/sets/"
DUE: Final = "2100-01-01T00:00:00.000Z"
# Below the default limit of a request, with the rest of it.
MOST_BYTES: Final = 800_000

Name = tuple[str, str]


@dataclass(slots=True)
class SetRecord:
    """The objects of a set; a schedule's name is its tenant and its id, a calendar's its own."""

    made: set[Name] = field(default_factory=set)
    made_policies: set[str] = field(default_factory=set)
    asked: dict[Name, str] = field(default_factory=dict)
    made_calendars: set[Name] = field(default_factory=set)

    def copy(self) -> SetRecord:
        """One that may be changed."""
        return SetRecord(
            set(self.made), set(self.made_policies), dict(self.asked), set(self.made_calendars)
        )

    def payload(self, name: str, applied_by: str) -> str:
        """The record as text; `BadDeclaration` where it would be too long.

            {"set": "shop", "applied_by": "…", "made_policies": ["shop"],
             "calendars": {"shop": ["de"]},
             "schedules": {"shop": {"report/daily": ["0123456789abcdef", 1]}}}

        A schedule has the digest that it was asked for with, or null, and 1 where the set has made
        it.  There are no `calendars` where the set has made none, as in records of older releases.
        """
        schedules: dict[str, dict[str, list[Any]]] = {}
        for tenant, schedule_id in sorted(self.made | self.asked.keys()):
            known = (tenant, schedule_id)
            entry = [self.asked.get(known), int(known in self.made)]
            schedules.setdefault(tenant, {})[schedule_id] = entry
        calendars: dict[str, list[str]] = {}
        for tenant, calendar in sorted(self.made_calendars):
            calendars.setdefault(tenant, []).append(calendar)
        written = {
            "set": name,
            "applied_by": applied_by,
            "made_policies": sorted(self.made_policies),
            **({"calendars": calendars} if calendars else {}),
            "schedules": schedules,
        }
        text = orjson.dumps(written)
        if len(text) > MOST_BYTES:
            raise BadDeclaration(
                f"set {name} has {len(self.made | self.asked.keys())} schedules, whose record would"
                f" take {len(text)} bytes of at most {MOST_BYTES}: divide it into several sets"
            )
        return text.decode()


def record_of_set(payload: str) -> SetRecord:
    """The record in a payload; `BadDeclaration` if the payload is not a record."""
    try:
        given = orjson.loads(payload)
        found = SetRecord(made_policies=set(given["made_policies"]))
        for tenant, calendars in given.get("calendars", {}).items():
            found.made_calendars |= {(tenant, name) for name in calendars}
        for tenant, schedules in given["schedules"].items():
            for schedule_id, (digest, made) in schedules.items():
                if digest is not None:
                    found.asked[tenant, schedule_id] = digest
                if made:
                    found.made.add((tenant, schedule_id))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadDeclaration(
            f"the record of this set cannot be read ({error!r}): cancel it, and apply again; what"
            " was made before is not pruned then"
        ) from None
    return found
