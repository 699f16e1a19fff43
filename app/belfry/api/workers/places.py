"""Places that are read: a partition, and the answer if it does not hold the schedule."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.workers.parts import RETRY_SOON
from belfry.api.workers.peers import LIES_AT, NOT_HELD


class ReadPlace(NamedTuple):
    """A read: a partition that shows the request at an offset, perhaps of a tenant.

    `handed_on`: another partition is the tenant's home, and has said that it lies here.
    """

    partition: int
    after: int
    tenant: str | None
    handed_on: bool


class LiesElsewhere(Exception):
    """The tenant's schedule lies in this partition instead."""

    def __init__(self, partition: int) -> None:
        super().__init__(f"it lies in partition {partition}")
        self.partition = partition


def not_held(request: Request, partition: int, lies_at: int | None = None) -> Response:
    """The answer to another worker that asks for a partition not held here (421).

    `lies_at`: the partition is held, but the schedule lies in that one.
    """
    detail = f"Partition {partition} is not held by this worker."
    told = {NOT_HELD: str(partition)}
    if lies_at is not None:
        detail = f"The tenant's key group lies in partition {lies_at}."
        told[LIES_AT] = str(lies_at)
    refusal = Problem(HTTPStatus.MISDIRECTED_REQUEST, detail, "not_held", told)
    return problem_response(refusal, request.url.path)


def moving(partition: int, why: str) -> Problem:
    """The problem for a caller whose answer could not be had in time (503)."""
    detail = f"Partition {partition} may be on its way to another worker ({why}). Try again."
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "moving", RETRY_SOON)
