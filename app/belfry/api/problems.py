"""Errors as RFC 9457 problem documents, whatever raised them.

No request ends a worker, and no answer shows a traceback: what is not the caller's fault is logged
and answered with 500.

    HTTP/1.1 409 Conflict
    content-type: application/problem+json

    {"type": "about:blank", "title": "Conflict", "status": 409, "code": "conflict",
     "detail": "The schedule exists, or has another version than expected.",
     "instance": "/v1/tenants/demo/schedules/hello"}

`code` is for programs and stays what it is from release to release. `detail` is a sentence for
people, and may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from belfry.api.nearest import unknown_name
from belfry.api.notes import note

MEDIA_TYPE: Final = "application/problem+json"

log = structlog.get_logger(__name__)


class Problem(HTTPException):
    """An answer that is a problem; `code` is stable and for programs, `more` goes with it.

    A route raises it at any depth, and the handlers of `install` answer with it:

        raise Problem(HTTPStatus.NOT_FOUND, "The tenant has no schedule 'a'.", "not_found")

    Middleware that stands before the routes makes the response itself, by `response`.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        code: str,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.more = {"code": code, **more}

    def response(self, instance: str) -> Response:
        """The problem document; `instance` is the path that was asked for.

        It also notes the code for the audit log.
        """
        note().problem(self.status_code, self.more["code"])
        document = {
            "type": "about:blank",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": str(self.detail),
            "instance": instance,
            **self.more,
        }
        return Response(orjson.dumps(document), self.status_code, self.headers, MEDIA_TYPE)


class ProblemAnswer(BaseModel):
    """RFC 9457: what is wrong, and what to do."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str = Field(description="Stable, for programs.")


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    # `Problem` is one of these, and so is what the framework raises itself.
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a problem, or what the framework refuses by itself."""
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return error.response(request.url.path)
    path, detail = request.url.path, str(error.detail)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _not_allowed(request).response(path)
    if error.status_code == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = f"There is nothing at {path}; /openapi.json lists what there is."
    code = HTTPStatus(error.status_code).name.lower()
    return Problem(error.status_code, detail, code, error.headers).response(path)


def _not_allowed(request: Request) -> Problem:
    """All methods that the path has: the framework names those of one route alone."""
    allowed = sorted(
        {
            method
            for routes in request.app.state.routers
            for route in routes.routes
            if route.matches(request.scope)[0] is not Match.NONE
            for method in getattr(route, "methods", None) or ()
        }
    )
    # What is no route of the API can be looked at: the page, its assets, this API's document.
    told = ", ".join(allowed or ["GET"])
    detail = f"{request.method} is not for {request.url.path}; allowed: {told}."
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return Problem(status, detail, "method_not_allowed", {"allow": told})


async def _invalid(request: Request, error: Exception) -> Response:
    """Answer parameters that are wrong, each with its place and what would be right."""
    assert isinstance(error, RequestValidationError)
    errors = [
        {"where": ".".join(map(str, found["loc"])), "message": _message(found, request)}
        for found in error.errors()
    ]
    detail = "; ".join(f"{found['where']}: {found['message']}" for found in errors)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return Problem(status, detail, "bad_parameters", errors=errors).response(request.url.path)


def _message(found: Any, request: Request) -> str:
    """What is wrong with a parameter; for an unknown name the nearest known one."""
    known = _parameters(request) if found["type"] == "extra_forbidden" else []
    return unknown_name(str(found["loc"][-1]), known, "parameter") if known else found["msg"]


def _parameters(request: Request) -> list[str]:
    """Names that the route's address takes behind its question mark."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    models = [each.field_info.annotation for each in getattr(dependant, "query_params", ())]
    return [name for model in models for name in getattr(model, "model_fields", ())]


async def _failed(request: Request, error: Exception) -> Response:
    """Answer an error that nobody expected: its traceback goes to the log."""
    log.error("A request failed.", path=request.url.path, exc_info=error)
    detail = "The worker failed to answer; its log holds the reason."
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return Problem(status, detail, "internal_error").response(request.url.path)
