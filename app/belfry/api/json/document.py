"""The OpenAPI document: facts that FastAPI cannot see for itself, and descriptions.

Answers are made as bytes and bodies are read by hand, so routes name their models here.
`openapi.py` writes the document.

    @router.post(…, responses=with_answer(VerdictAnswer, 201) | problems(404, 409),
                 openapi_extra=body_of(ScheduleBody))

So a call pays for no model of its answer, and the document has it all the same.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from belfry.api.problems import MEDIA_TYPE, ProblemAnswer

REF: Final = "#/components/schemas/{model}"
NDJSON: Final = "application/x-ndjson"
# Whatever is asked for: from where, how much of it, and how many ask.
AT_THE_DOOR: Final = (403, 413, 421, 503)
# And of what is not for everybody: who asks, and how slowly.
EVERYWHERE: Final = (*AT_THE_DOOR, 401, 408)

Responses = dict[int | str, dict[str, Any]]


def with_answer(kind: type[BaseModel], *statuses: int) -> Responses:
    """Responses that hold one model, under each of these statuses.

    The model is remembered, and `describe` adds its schema to the document.
    """
    content = {"application/json": {"schema": {"$ref": REF.format(model=kind.__name__)}}}
    if kind not in _ANSWERS:
        _ANSWERS.append(kind)
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses
    }


# Models that the routes have named, each once, in the order in which routers were made.
_BODIES: Final[list[type[BaseModel]]] = []
_ANSWERS: Final[list[type[BaseModel]]] = [ProblemAnswer]


def bulk_answer(kind: type[BaseModel]) -> Responses:
    """The 200 of a request that may be answered as a whole or in lines."""
    found = with_answer(kind, 200)
    found[200]["content"] = {
        **found[200]["content"],
        NDJSON: {"schema": {"type": "string", "description": "An object a line, with a status."}},
    }
    return found


def problems(*statuses: int) -> Responses:
    """Responses that are problem documents, with those that every route may give."""
    return _problems({*statuses, *EVERYWHERE})


def problems_at_the_door() -> Responses:
    """The problems of routes that are for everybody, and that read only an address."""
    return _problems(set(AT_THE_DOOR))


def _problems(statuses: set[int]) -> Responses:
    schema = {"$ref": REF.format(model="ProblemAnswer")}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            # Its own: the framework adds what else a status may hold.
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        for status in sorted(statuses)
    }


def body_of(kind: type[BaseModel], *, bulk: bool = False) -> dict[str, Any]:
    """The body of a route that reads it by hand; with `bulk` also in JSON lines."""
    if kind not in _BODIES:
        _BODIES.append(kind)
    content: dict[str, Any] = {
        "application/json": {"schema": {"$ref": REF.format(model=kind.__name__)}}
    }
    if bulk:
        lines = "JSON lines: an object like that of application/json a line, at most 10 000."
        content[NDJSON] = {"schema": {"type": "string", "description": lines}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, description: str) -> None:
    """Make the application answer with the whole document."""

    def openapi() -> dict[str, Any]:
        """The document; it is made once, when it is first asked for."""
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title,
                version=app.version,
                openapi_version="3.1.0",
                description=description,
                routes=app.routes,
            )
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            schemas.update(_models("validation", tuple(_BODIES)))
            schemas.update(_models("serialization", tuple(_ANSWERS)))
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _models(mode: Any, kinds: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    """JSON Schemas of models, by their names."""
    _, found = models_json_schema([(kind, mode) for kind in kinds], ref_template=REF)
    models: dict[str, Any] = found["$defs"]
    return models
