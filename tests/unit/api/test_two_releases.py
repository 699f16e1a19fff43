"""While two releases share a group, a new worker asks an old one for what that knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from belfry.api.workers.internal_token import Target
from belfry.api.workers.places import ReadPlace
from belfry.api.workers.reading import Reads

PATH = "/v1/tenants/t/schedules/s"


class Old:
    """A worker of the release before, which refuses what it does not know."""

    def __init__(self, refused: str) -> None:
        self.refused = refused
        self.asked: list[str] = []

    async def ask(self, _url: str, target: Target, _caller: Any, _headers: Any) -> Response:
        self.asked.append(target.query)
        return Response(b"", 422 if self.refused in target.query else 200)


def request(query: str) -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    head = {"type": "http", "method": "GET", "path": PATH, "raw_path": PATH.encode()}
    where = {"server": ("127.0.0.1", 8700), "scheme": "http", "headers": []}
    return Request({**head, **where, "query_string": query.encode()}, receive)


@pytest.mark.parametrize(
    ("query", "refused", "asked", "status"),
    [
        ("next=3&last=10", "last", ["next=3&last=10", "next=3"], 200),
        ("last=10", "last", ["last=10", ""], 200),
        ("next=3&last=10", "none", ["next=3&last=10"], 200),
        ("next=x", "next", ["next=x"], 422),
        ("next=x&last=1", "next", ["next=x&last=1", "next=x"], 422),
    ],
)
async def test_a_parameter_that_it_refuses_is_left_out(
    query: str, refused: str, asked: list[str], status: int
) -> None:
    old, caller = Old(refused), SimpleNamespace()
    parts: Any = SimpleNamespace(peers=old)
    given: Any = caller
    place = ReadPlace(3, -1, None, handed_on=False)
    answer = await Reads(parts)._asked("http://old", request(query), given, place)
    assert not isinstance(answer, str | int)
    assert (answer.status_code, old.asked) == (status, asked)
