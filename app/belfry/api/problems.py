"""The answer to a failed call, as a problem document of RFC 9457: a value.

Code that reads bodies, parameters and conditions raises a `Problem` with a sentence for people and
a code for programs.  `problem_answers.py` sends it, and makes one of everything else that goes
wrong.

    HTTP/1.1 409 Conflict
    content-type: application/problem+json

    {"type": "about:blank", "title": "Conflict", "status": 409, "code": "conflict",
     "detail": "The schedule exists, or has another version than expected.",
     "instance": "/v1/tenants/demo/schedules/hello"}

`code` stays the same from release to release.  `detail` may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

MEDIA_TYPE: Final = "application/problem+json"


class Problem(Exception):
    """An answer that is a problem: its HTTP status, and a sentence that says what to do.

    `code` is stable and for programs, `headers` go with the answer, and `more` are further members
    of the document (the code is one of them).
    """

    def __init__(
        self,
        status: int,
        detail: str,
        code: str,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers) if headers else None
        self.more = {"code": code, **more}

    def document(self, instance: str) -> dict[str, Any]:
        """The problem document; `instance` is the path that was asked for."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            **self.more,
        }


class ProblemAnswer(BaseModel):
    """RFC 9457: what is wrong, and what to do."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str = Field(description="Stable, for programs.")


def with_head(methods: Iterable[str]) -> list[str]:
    """Names of methods in their order, with HEAD where GET is among them."""
    found = set(methods)
    return sorted(found | {"HEAD"} if "GET" in found else found)
