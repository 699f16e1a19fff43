"""Errors as problem documents, whatever raised them.

No request ends a worker, and no answer shows a traceback: an error that is not the caller's fault
is logged and answered with 500.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from belfry.api.mistakes import told
from belfry.api.nearest import unknown_name
from belfry.api.notes import note
from belfry.api.problems import MEDIA_TYPE, Problem, with_head

log = structlog.get_logger(__name__)


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    app.add_exception_handler(Problem, _told)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)


def problem_response(problem: Problem, instance: str) -> Response:
    """The answer that a problem is; `instance` is the path that was asked for.

    The note of the request, which the audit log reads, gets its status and its code.
    """
    note().problem(problem.status, problem.more["code"])
    body = orjson.dumps(problem.document(instance))
    return Response(body, problem.status, problem.headers, MEDIA_TYPE)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(error, request.url.path)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, detail = request.url.path, str(error.detail)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return problem_response(_not_allowed(request), path)
    if error.status_code == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = f"There is nothing at {path}; /openapi.json lists what there is."
    code = HTTPStatus(error.status_code).name.lower()
    return problem_response(Problem(error.status_code, detail, code, error.headers), path)


def _not_allowed(request: Request) -> Problem:
    """All methods that the path has: the framework names those of one route alone."""
    allowed = {
        method
        for routes in request.app.state.routers
        for route in routes.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }
    # Addresses besides the routes of the API can be looked at: the page, its assets, this API's
    # document.
    told = ", ".join(with_head(allowed or {"GET"}))
    detail = f"{request.method} is not for {request.url.path}; allowed: {told}."
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return Problem(status, detail, "method_not_allowed", {"allow": told})


async def _invalid(request: Request, error: Exception) -> Response:
    """Answer wrong parameters, each with its place and the allowed values."""
    assert isinstance(error, RequestValidationError)
    errors = [
        {"where": ".".join(map(str, found["loc"])), "message": _message(found, request)}
        for found in error.errors()
    ]
    detail = "; ".join(f"{found['where']}: {found['message']}" for found in errors)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    problem = Problem(status, detail, "bad_parameters", errors=errors)
    return problem_response(problem, request.url.path)


def _message(found: Any, request: Request) -> str:
    """What is wrong with a parameter; for an unknown name the nearest known one."""
    known = _parameters(request) if found["type"] == "extra_forbidden" else []
    return unknown_name(str(found["loc"][-1]), known, "parameter") if known else told(found)


def _parameters(request: Request) -> list[str]:
    """Names that the route's address takes behind its question mark."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    models = [each.field_info.annotation for each in getattr(dependant, "query_params", ())]
    return [name for model in models for name in getattr(model, "model_fields", ())]


async def _failed(request: Request, error: Exception) -> Response:
    log.error("A request failed.", path=request.url.path, exc_info=error)
    detail = "The worker failed to answer; its log holds the reason."
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return problem_response(Problem(status, detail, "internal_error"), request.url.path)
