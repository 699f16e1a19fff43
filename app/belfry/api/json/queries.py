"""Parts of an address: names in its path, parameters of callers, and conditions in headers.

*Names* are decoded once, and only after the path has been split: a schedule's id may hold slashes.
The guard leaves the paths of the API as they were written, so ``order%2F4711`` is one segment,
which cannot be taken for ``order/4711/pause``; an id whose last part is no action may also be
written with plain slashes.

*Conditions*: `If-Match` and `If-None-Match` (RFC 9110, section 13) name the version that a schedule
must have for a change to count. A condition that is not met is a conflict, and the schedule stays
as it is:

    If-Match: "1234567.3"    this generation in its third version
    If-Match: "3"            the third version of any generation
    If-None-Match: *         no schedule of this id
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final, Literal, Self
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from belfry.api.json.values import Instant
from belfry.schedules.request import schedule_id_problem, tenant_problem
from belfry.store.lookup import STATES, Wanted

# States of schedules, as a list may be filtered by.
State = StrEnum("State", {name: name for name in STATES})  # type: ignore[misc]
TENANT_PATTERN: Final = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
HOST_PATTERN: Final = r"^[^\u0000-\u0020/?#@\u007f-\u009f]{1,300}$"


def _decoded(given: object) -> object:
    """A segment of a path as text (RFC 3986); ValueError where its bytes are no UTF-8."""
    if not isinstance(given, str):
        return given
    try:
        return unquote(given, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("its percent-encoding is no UTF-8") from None


def _tenant(name: str) -> str:
    """The name, unless no tenant can have it; ValueError says why."""
    problem = tenant_problem(name)
    if problem is not None:
        raise ValueError(problem.reason)
    return name


def _schedule_id(name: str) -> str:
    """The id, unless no schedule can have it; ValueError says why."""
    problem = schedule_id_problem(name)
    if problem is not None:
        raise ValueError(problem.reason)
    return name


def _host(name: str) -> str:
    """A host's name, with a port or without one, in lower case, as breakers tell hosts apart."""
    if re.fullmatch(HOST_PATTERN, name) is None:
        raise ValueError("it is no host: give a name or name:port, as /v1/delivery-hosts has it")
    return name.lower()


DecodedHost = Annotated[
    str,
    BeforeValidator(_decoded),
    AfterValidator(_host),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 300, "pattern": HOST_PATTERN}),
]
DecodedTenant = Annotated[
    str,
    BeforeValidator(_decoded),
    AfterValidator(_tenant),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100, "pattern": TENANT_PATTERN}),
]
DecodedScheduleId = Annotated[
    str,
    BeforeValidator(_decoded),
    AfterValidator(_schedule_id),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": r"^[^\u0000-\u001f\u007f-\u009f]+$",
        }
    ),
]


class Known(BaseModel):
    """Unknown names are refused: one that is misspelt would silently show everything."""

    model_config = ConfigDict(extra="forbid")


class OfAllAsked(Known):
    """Who is to answer where each worker knows of itself, and how long others are waited for."""

    alone: bool = Field(False, description="The worker that is asked, without asking the others.")
    at_once: bool = Field(
        False,
        description="Wait 0.25 s for the others instead of 1 s, unless they are asked for the first"
        " time, and show who is late as it answered last, at most 5 minutes ago.",
    )


class DueRange(Known):
    """A range of due instants."""

    due_from: Instant | None = Field(None, description="First due instant.")
    due_until: Instant | None = Field(None, description="Due before this instant.")
    cursor: str | None = Field(None, max_length=2000, description="Of the page before.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Refuse a range that ends before it begins: nobody asks for nothing."""
        if None not in (self.due_from, self.due_until) and self.due_from > self.due_until:  # type: ignore[operator]
            raise ValueError(
                "due_from is after due_until: give the first due instant as due_from, and as"
                " due_until the one before which the range ends"
            )
        return self


class PageQuery(Known):
    """Which part of a list is asked for."""

    limit: int = Field(100, ge=1, le=1000)
    cursor: str | None = Field(None, max_length=2000, description="Of the page before.")


class ListQuery(DueRange):
    """Which schedules a list shows."""

    prefix: str = Field("", max_length=255, description="Beginning of the ids.")
    state: State | None = None
    group: str | None = Field(None, max_length=255)
    event_type: str | None = Field(None, max_length=255)
    limit: int = Field(100, ge=1, le=1000)

    def wanted(self, tenant: str) -> Wanted:
        """The same as the store reads it."""
        return Wanted(
            tenant.encode(),
            self.prefix.encode(),
            self.due_from,
            self.due_until,
            None if self.state is None else str(self.state),
            None if self.group is None else self.group.encode(),
            None if self.event_type is None else self.event_type.encode(),
        )


class Shown(Known):
    """How much is shown of one schedule."""

    next: int = Field(0, ge=0, le=20, description="Occurrences to come that are shown.")
    last: int = Field(0, ge=0, le=10, description="Last fires that are shown.")


class ChangeQuery(Known):
    """How a change is asked for."""

    wait: Literal["accepted", "none"] = Field(
        "accepted",
        description="`accepted`: until the verdict is there; `none`: until Kafka has the request.",
    )

    @property
    def waits(self) -> bool:
        """Whether the verdict is waited for."""
        return self.wait == "accepted"


class AskingWhy(ChangeQuery):
    """The same for requests without a body."""

    reason: str | None = Field(None, max_length=2000, description="Why; kept in the history.")
    request_id: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="Name of the request: a repeat within an hour changes nothing.",
    )


class Why(Known):
    """Why something is done that is no request about a schedule."""

    reason: str | None = Field(None, max_length=2000, description="Why; kept in the audit log.")


class AskingOfFire(AskingWhy):
    """The same for requests about one fire."""

    fire_id: str = Field(
        description="Id of the fire, as in the header `belfry-fire-id` of its record."
    )
