"""The one table of a request's fields, in the order of the schema.

All code that reads or shows a request asks this table, or is held to it by a test:

    derived from it   `EMPTY`, the header protocol (`wire/headers`), what the client sends and what
                      exports hold (`client`), the options that say when (`cli/options`), when an
                      HTTP body is due and how an answer shows it (`api`)
    checked           the schema, which is a published file; signatures and models that are written
                      for people: `Request`, `client.options.Definition`, the bodies of `api`, the
                      options of `cli`; `docs/schedules.md` and `docs/schemas.md`

`tests/architecture/test_fields.py` does the checking, and names the place that lacks a field.  The
fields by which the kinds say when come from the kinds themselves (`triggers/registry`).

The order is that of the Avro schema, and grows at its end only:

    names │ at … cron │ bounds │ event │ asking │ LATER │ rrule … │ LATEST
            └ the first four kinds                        └ later kinds

Two releases that differ by a field read each other's records by the rules of Avro: a reader skips
what it does not know, and fills what is missing with the default.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from belfry.schedules.field import Field, Form
from belfry.schedules.later_fields import LATER, LATEST
from belfry.schedules.request import (
    ACTIONS,
    action_problem,
    fire_problem,
    schedule_id_problem,
    tenant_problem,
    text_problem,
)
from belfry.schedules.rule_checks import (
    jitter_problem,
    lateness_problem,
    when_problem,
    window_problem,
)
from belfry.schedules.triggers.registry import KINDS, RECURRING, ZONED, listed
from belfry.schedules.triggers.rule import POLICIES, Rule
from belfry.schedules.triggers.zones import zone_problem

# The fields that say when, one of each kind, in the order of the registry.
WHEN: Final = tuple(kind.field for kind in KINDS.values())
# The first four stand in the middle of the schema, where they stood in the first release; the
# fields of later kinds are at its end, as all fields are that came later.
_EARLY: Final = 4
_RECURRING: Final = listed(RECURRING, "and")
_ZONED: Final = listed(ZONED, "and")


def _read_by_kinds() -> str:
    """Which fields each kind reads, as ``AT reads at, CRON cron and timezone`` …"""
    first, *others = (
        (kind.name, kind.field.name + " and timezone" * kind.zoned) for kind in KINDS.values()
    )
    return ", ".join([" reads ".join(first), *map(" ".join, others)])


_NAMES: Final = (
    Field(
        name="tenant",
        form=Form.TEXT,
        doc="Owner: 1-100 of A-Z a-z 0-9 _ - with single dots inside.",
        required=True,
        header="belfry-tenant",
        check=tenant_problem,
    ),
    Field(
        name="schedule_id",
        form=Form.TEXT,
        doc="Name of the schedule within its tenant: 1-255 bytes of UTF-8 without control"
        " characters.",
        required=True,
        header="belfry-id",
        also=("schedule",),
        check=schedule_id_problem,
    ),
    Field(
        name="action",
        form=Form.SYMBOL,
        doc="What is asked for.",
        default="UPSERT",
        symbols=tuple(sorted(ACTIONS)),
        header="belfry-action",
        argument="action",
        check=action_problem,
    ),
    Field(
        name="kind",
        form=Form.SYMBOL,
        doc=f"Which rule applies: {_read_by_kinds()}.",
        default="AT",
        symbols=tuple(KINDS),
        check=when_problem,
    ),
)

_BOUNDS: Final = (
    Field(
        name="timezone",
        form=Form.TEXT,
        doc=f"{_ZONED}, and all with except_cron or calendar: IANA time zone that the expression"
        " is read in; null is UTC.",
        header="belfry-timezone",
        also=("tz", "zone"),
        flag="--tz",
        argument="timezone",
        check=zone_problem,
    ),
    Field(
        name="start_at",
        form=Form.INSTANT,
        doc=f"{_RECURRING}: no occurrence before it (inclusive).",
        header="belfry-start-at",
        flag="--start-at",
        argument="start_at",
        check=window_problem,
    ),
    Field(
        name="end_at",
        form=Form.INSTANT,
        doc=f"{_RECURRING}: no occurrence after it (inclusive).",
        header="belfry-end-at",
        also=("until",),
        flag="--end-at",
        argument="end_at",
        check=window_problem,
    ),
    Field(
        name="max_fires",
        form=Form.NUMBER,
        doc=f"{_RECURRING}: the schedule completes after this many fires.",
        header="belfry-max-fires",
        flag="--max-fires",
        argument="max_fires",
        check=window_problem,
    ),
    Field(
        name="jitter_ms",
        form=Form.DURATION,
        doc="Each occurrence is moved later by a fixed pseudo-random share of this many"
        " milliseconds.",
        header="belfry-jitter",
        flag="--jitter",
        argument="jitter",
        check=jitter_problem,
    ),
    Field(
        name="misfire",
        form=Form.SYMBOL,
        doc="What becomes of occurrences later than max_lateness_ms; null takes the tenant's, else"
        " FIRE_ONCE.",
        symbols=POLICIES[1:],
        header="belfry-misfire",
        flag="--misfire",
        argument="misfire",
        check=lateness_problem,
    ),
    Field(
        name="max_lateness_ms",
        form=Form.DURATION,
        doc="How late an occurrence still counts as in time, in milliseconds; null is 60 000 for"
        " recurring schedules and no limit for one-shots.",
        header="belfry-max-lateness",
        flag="--max-lateness",
        argument="max_lateness",
        check=lateness_problem,
    ),
)

_EVENT: Final = (
    Field(
        name="event_type",
        form=Form.TEXT,
        doc="Type that the fired event carries (ce_type for CloudEvents).",
        header="belfry-type",
        also=("event-type",),
        flag="--event-type",
        argument="event_type",
        check=text_problem,
    ),
    Field(
        name="group",
        form=Form.TEXT,
        doc="Fired events of one group keep their due order and share an output partition.",
        header="belfry-group",
        flag="--group",
        argument="group",
        check=text_problem,
    ),
    Field(
        name="key",
        form=Form.BYTES,
        doc="Key of the fired record; null takes group, else schedule_id.",
        flag="--key",
        argument="key",
    ),
    Field(
        name="payload",
        form=Form.BYTES,
        doc="Value of the fired record, opaque to belfry; null fires a null value.",
        flag="--payload",
        argument="payload",
    ),
    Field(
        name="headers",
        form=Form.HEADERS,
        doc="Headers of the fired record; order, repeats and nulls are kept.",
        default=[],
        flag="--header",
        argument="headers",
        check=text_problem,
    ),
)

_ASKING: Final = (
    Field(
        name="expected_version",
        form=Form.NUMBER,
        doc="The request counts only if the schedule has this version now; CONFLICT otherwise.",
        header="belfry-expected-version",
        also=("version", "if-match"),
        flag="--expected-version",
        argument="expected_version",
    ),
    Field(
        name="request_id",
        form=Form.TEXT,
        doc="Name of the request: it gets exactly one lifecycle record, and a repeat within an hour"
        " gets DUPLICATE.",
        header="belfry-request-id",
        flag="--request-id",
        argument="request_id",
        check=text_problem,
    ),
    Field(
        name="reason",
        form=Form.TEXT,
        doc="Why, in the words of the one who asks; kept in the history.",
        header="belfry-reason",
        flag="--reason",
        argument="reason",
    ),
    Field(
        name="fire_id",
        form=Form.TEXT,
        doc="ACK: which fire is acknowledged.",
        check=fire_problem,
    ),
)

FIELDS: Final = {
    field.name: field
    for field in (
        *_NAMES,
        *WHEN[:_EARLY],
        *_BOUNDS,
        *_EVENT,
        *_ASKING,
        *LATER,
        *WHEN[_EARLY:],
        *LATEST,
    )
}

# A request that says nothing: all fields that have a default.  Copy it, and never change it.
EMPTY: Final[dict[str, Any]] = {
    name: field.default for name, field in FIELDS.items() if not field.required
}
# Which kind a field that says when belongs to.
KIND_OF: Final = {kind.field.name: name for name, kind in KINDS.items()}
# Fields that a rule keeps under their own names; what says when is its `when`.
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

    ``named(Form.INSTANT)`` is what a door has to turn from text into epoch milliseconds.
    """
    return frozenset(name for name, field in FIELDS.items() if field.form in forms)
