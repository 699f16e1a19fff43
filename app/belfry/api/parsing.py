"""Bodies to values: JSON alone, read strictly, with errors that say where."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from belfry.api.problems import Problem

B = TypeVar("B", bound=BaseModel)
MOST_SHOWN = 20


async def parsed(request: Request, kind: type[B]) -> B:
    """The body of a request; raises `Problem`."""
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type {given[:100]!r} is not taken here: send application/json.",
            "not_json",
        )
    return read_json(await request.body(), kind)


def read_json(raw: bytes, kind: type[B]) -> B:
    """A value from JSON; raises `Problem`."""
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> Problem:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    errors: list[dict[str, Any]] = [
        {"where": ".".join(map(str, each["loc"])) or "body", "message": _plain(each["msg"])}
        for each in found[:MOST_SHOWN]
    ]
    if found[0]["type"] == "json_invalid":
        return Problem(HTTPStatus.BAD_REQUEST, errors[0]["message"], "bad_json", errors=errors)
    detail = "; ".join(f"{each['where']}: {each['message']}" for each in errors)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "bad_body", errors=errors)


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ")
