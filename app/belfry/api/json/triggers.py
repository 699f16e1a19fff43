"""When an event is due, as bodies say it: the part that a schedule and a preview have in common.

One field for each kind of trigger says when, and exactly one of them is given:

    {"delay_ms": 300000}                                  AFTER
    {"cron": "0 9 * * MON", "timezone": "Europe/Paris"}   CRON
    {"at": "2026-12-01T09:00:00Z", "delay_ms": 5}         refused: two of them say when
    {"kind": "CRON", "delay_ms": 5}                       refused: the kind is another one

The fields are made from the table of kinds, so a new kind of trigger is in every body as soon as it
is in that table (`schedules/triggers/registry.py`). Whether a rule makes sense, and when it is due,
is not asked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    Field,
    StringConstraints,
    create_model,
    model_validator,
)

from belfry.api.json.values import (
    Instant,
    Milliseconds,
    Strict,
    Text,
)
from belfry.schedules.field import Form
from belfry.schedules.fields import FIELDS, KIND_OF, WHEN
from belfry.schedules.triggers import rrule_text
from belfry.schedules.triggers.registry import KINDS

# A recurrence has lines; each kind's own check may allow less.
LONGEST_RULE: Final = rrule_text.MAX_TEXT
# What a field that says when may be, by its form.
_WHEN_TYPES: Final[dict[Form, Any]] = {
    Form.INSTANT: Instant | None,
    Form.DURATION: Milliseconds | None,
    Form.TEXT: Annotated[str, StringConstraints(max_length=LONGEST_RULE)] | None,
}


if TYPE_CHECKING:

    class WhenBody(Strict):
        """The kind of trigger, and the field of each kind; made from their table."""

        kind: str | None

else:
    WhenBody = create_model(
        "WhenBody",
        __base__=Strict,
        kind=(
            Literal[tuple(KINDS)] | None,
            Field(None, description="May be left out: the field that says when tells it."),
        ),
        **{
            field.name: (_WHEN_TYPES[field.form], Field(None, description=field.doc))
            for field in WHEN
        },
    )


class TriggerBody(WhenBody):
    """When an event is due."""

    timezone: Text | None = Field(None, description=FIELDS["timezone"].doc)
    except_cron: Text | None = Field(None, description=FIELDS["except_cron"].doc)
    calendar: Text | None = Field(None, description=FIELDS["calendar"].doc)
    on_holiday: Literal["SKIP", "NEXT_BUSINESS_DAY", "PREVIOUS_BUSINESS_DAY"] | None = Field(
        None, description=FIELDS["on_holiday"].doc
    )
    start_at: Instant | None = None
    end_at: Instant | None = Field(None, description="The last instant that may be due.")
    max_fires: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    jitter_ms: Milliseconds | None = None
    max_wait_ms: Milliseconds | None = Field(None, description=FIELDS["max_wait_ms"].doc)
    ack_delay_ms: Milliseconds | None = Field(None, description=FIELDS["ack_delay_ms"].doc)
    latest_at: Instant | None = Field(None, description=FIELDS["latest_at"].doc)

    @model_validator(mode="after")
    def _says_when_once(self) -> Self:
        """Refuse a body that says when in no way, in several, or otherwise than its kind."""
        given = [name for name in KIND_OF if getattr(self, name) is not None]
        if len(given) != 1:
            names = ", ".join(given) or "none"
            raise ValueError(f"exactly one of {', '.join(KIND_OF)} says when; given: {names}")
        if self.kind is not None and self.kind != KIND_OF[given[0]]:
            raise ValueError(
                f"kind {self.kind} does not go with {given[0]}: leave kind out, or make it"
                f" {KIND_OF[given[0]]}"
            )
        return self

    def kind_given(self) -> str:
        """The kind that the body asks for."""
        return next(kind for name, kind in KIND_OF.items() if getattr(self, name) is not None)


TRIGGER_FIELDS: Final = tuple(name for name in TriggerBody.model_fields if name != "kind")
