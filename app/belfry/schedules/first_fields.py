"""Fields of the first release, in four parts, in the order of the schema (`fields.FIELDS`).

    NAMES     whose schedule it is, what is asked for, and which kind says when
    BOUNDS    what every recurring kind has besides: zone, window, jitter, lateness
    EVENT     what is fired
    ASKING    what is about this one request

The fields that say when stand between the first two parts, and come from the kinds themselves.
No field is ever added here: one that comes later has its place at the end of the schema, and so
in `later_fields`.  The sentence of a field is that of its schema, word by word.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.field import Field, Form
from belfry.schedules.fire_checks import jitter_problem, lateness_problem
from belfry.schedules.request import (
    ACTIONS,
    action_problem,
    fire_problem,
    schedule_id_problem,
    tenant_problem,
    text_problem,
)
from belfry.schedules.rule_checks import when_problem, window_problem
from belfry.schedules.triggers.registry import KINDS, RECURRING, ZONED, listed
from belfry.schedules.triggers.rule import POLICIES
from belfry.schedules.triggers.zones import zone_problem

_RECURRING: Final = listed(RECURRING, "and")
_ZONED: Final = listed(ZONED, "and")


def _read_by_kinds() -> str:
    """Which fields each kind reads, as ``AT reads at, CRON cron and timezone`` …"""
    first, *others = (
        (kind.name, kind.field.name + " and timezone" * kind.zoned) for kind in KINDS.values()
    )
    return ", ".join([" reads ".join(first), *map(" ".join, others)])


NAMES: Final = (
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

BOUNDS: Final = (
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
        " FIRE_ONCE for recurring schedules and SKIP for one-shots.",
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

EVENT: Final = (
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

ASKING: Final = (
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
