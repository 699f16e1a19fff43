"""What the tools of `belfry mcp` take, as models whose JSON Schemas an agent reads.

An agent knows of a tool what its schema says, so each description is written for it: what the
argument means, an example, and what is assumed without it. Names are those of the HTTP API, and
where the API has a model already, the arguments are that model with the tenant beside it:

    create    ScheduleBody + tenant, replace          list    ListQuery + tenant, a shorter limit
    cancel    tenant, schedule_id, version, reason    get     tenant, schedule_id, how many to show

A list and a preview are short unless more is asked for, since all of an answer goes into what the
agent has to read. Of these models only the names are used to check a call: the worker judges the
values. Answers are those of the API as well, but for `WhyAnswer`, which `belfry why` has.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from belfry.api.json.bodies import ScheduleBody
from belfry.api.json.events import EventAnswer
from belfry.api.json.queries import ListQuery
from belfry.api.json.schedule_answers import ScheduleAnswer

# Rows of a list, and occurrences to come, unless the agent asks for another number.
SHOWN_IN_A_LIST: Final = 20
SHOWN_NEXT: Final = 10


class OfTenant(BaseModel):
    """Whose schedules."""

    model_config = ConfigDict(extra="forbid")
    tenant: str = Field(description="Owner of the schedules, such as `demo`.", min_length=1)


class OfSchedule(OfTenant):
    """Which schedule."""

    schedule_id: str = Field(description="Its id, such as `order/4711`.", min_length=1)


class ScheduleArguments(ScheduleBody, OfTenant):
    """A schedule to create, or to replace the present one of its name."""

    replace: bool = Field(
        False, description="Replace a schedule of this id; without it another one is a conflict."
    )


class CancelArguments(OfSchedule):
    """A schedule to end."""

    reason: str | None = Field(None, max_length=2000, description="Why; kept in the history.")
    expected_version: int | str | None = Field(
        None, description="Only if it has this version now: 3, or generation and version, 17.3."
    )
    request_id: str | None = Field(
        None, max_length=255, description="Name of the request: a repeat within an hour is safe."
    )


class GetArguments(OfSchedule):
    """A schedule to look at."""

    next: int = Field(SHOWN_NEXT, ge=0, le=20, description="Occurrences to come that are shown.")
    last: int = Field(0, ge=0, le=10, description="Last fires that are shown.")


class ListArguments(ListQuery, OfTenant):
    """Which schedules to list."""

    # Fewer than over HTTP: the agent reads all of the answer.
    limit: int = Field(SHOWN_IN_A_LIST, ge=1, le=1000)


class WhyAnswer(BaseModel):
    """Why a schedule fired, did not fire, or still waits."""

    answer: str = Field(description="The answer in a sentence or two.")
    schedule: ScheduleAnswer | None = Field(description="As it stands; null where it is gone.")
    events: list[EventAnswer] = Field(description="Its newest events, oldest first.")
    # A program that wants them asks for the schedule's history.
    more: bool = Field(description="Whether there are older events, which are not shown.")
