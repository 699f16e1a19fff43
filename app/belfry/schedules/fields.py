"""The one table of a request's fields, in the order of the schema.

All code that reads or shows a request asks this table, or is held to it by a test:

    derived from it   `EMPTY`, the header protocol (`wire/headers`), what the client sends and what
                      exports hold (`client`), the options that say when (`cli/when_options`), when
                      an HTTP body is due and how an answer shows it (`api`)
    checked           the schema, which is a published file; signatures and models that are written
                      for people: `Request`, `client.options.Definition`, the bodies of `api`, the
                      options of `cli`; `docs/schedules.md` and `docs/schemas.md`

`tests/architecture/test_fields.py` does the checking, and names the place that lacks a field.  The
fields by which the kinds say when come from the kinds themselves (`triggers/registry`).

The order is that of the Avro schema, and grows at its end only:

    names │ at … cron │ bounds │ event │ asking │ LATER │ rrule │ LATEST │ after_ack … │ DEPENDENCE
            └ the first four kinds                        └ later           └ still later

Two releases that differ by a field read each other's records by the rules of Avro: a reader skips
fields that it does not know, and fills missing ones with the default.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from belfry.schedules.field import Form
from belfry.schedules.first_fields import ASKING, BOUNDS, EVENT, NAMES
from belfry.schedules.later_fields import DEPENDENCE, LATER, LATEST
from belfry.schedules.triggers.registry import KINDS
from belfry.schedules.triggers.rule import Rule

# The fields that say when, one of each kind, in the order of the registry.
WHEN: Final = tuple(kind.field for kind in KINDS.values())
# The first four stand in the middle of the schema, where they stood in the first release; the
# fields of later kinds are at its end, as all fields are that came later.
_EARLY: Final = 4
_LATER_KINDS: Final = 5
FIELDS: Final = {
    field.name: field
    for field in (
        *NAMES,
        *WHEN[:_EARLY],
        *BOUNDS,
        *EVENT,
        *ASKING,
        *LATER,
        *WHEN[_EARLY:_LATER_KINDS],
        *LATEST,
        *WHEN[_LATER_KINDS:],
        *DEPENDENCE,
    )
}

# A request that says nothing: all fields that have a default.  Copy it, and never change it.
EMPTY: Final[dict[str, Any]] = {
    name: field.default for name, field in FIELDS.items() if not field.required
}
# Which kind a field that says when belongs to.
KIND_OF: Final = {kind.field.name: name for name, kind in KINDS.items()}
# Fields that a rule keeps under their own names; the kind's own field is its `when`.
OF_A_RULE: Final = tuple(name for name in FIELDS if name in {each.name for each in fields(Rule)})
# Fields that are about one request and not about a schedule; an export does not hold them.
OF_ONE_REQUEST: Final = frozenset(
    {
        *("action", "expected_version", "request_id", "reason", "fire_id", "bulk"),
        *("days_off", "throttle_ms"),
    }
)
# Fields that do not define a schedule: its name, its kind (which follows from the others), and
# where it stands.
NOT_DEFINING: Final = OF_ONE_REQUEST | {"tenant", "schedule_id", "kind", "standing"}


def named(*forms: Form) -> frozenset[str]:
    """The names of the fields that have one of these forms.

    ``named(Form.INSTANT)`` are fields that a door turns from text into epoch milliseconds.
    """
    return frozenset(name for name, field in FIELDS.items() if field.form in forms)
