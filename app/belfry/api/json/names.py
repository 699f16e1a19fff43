"""Names in paths: decoded once, and only after the path has been split.

A schedule's id may hold slashes. The guard leaves the paths of the API as they were written, so
``order%2F4711`` is one segment, which cannot be taken for ``order/4711/pause``; an id whose last
part is no action may also be written with plain slashes.

    PUT  /v1/tenants/demo/schedules/order%2F4711          the schedule order/4711
    POST /v1/tenants/demo/schedules/order%2F4711/pause    pause it
    PUT  /v1/tenants/demo/schedules/order/4711            the same schedule as the first
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Path
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from belfry.schedules.request import schedule_id_problem, tenant_problem

TENANT_PATTERN: Final = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"


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


# The pattern is for the document; `tenant_problem` decides, and says in words what is wrong.
TenantName = Annotated[
    str,
    BeforeValidator(_decoded),
    AfterValidator(_tenant),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100, "pattern": TENANT_PATTERN}),
    Path(description="Owner of the schedules."),
]
# The same for ids; lengths of the document are characters, those that count are bytes of UTF-8.
ScheduleName = Annotated[
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
    Path(description="Name of the schedule; percent-encode its slashes."),
]
