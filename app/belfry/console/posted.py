"""The fields of forms, and the page they come from.

A form is sent by htmx from a page of this worker.  Both are looked at: the header `HX-Request`,
which a page of another origin cannot send without being asked for leave, and `Origin`, which has to
be this worker's own.  `BELFRY_HTTP_ALLOWED_ORIGINS` lets other pages use the API, not the console.

If a key is needed, it would be enough, since no strange page can add it (`__init__.py`). But a
worker on loopback needs none, and there a form of any page could use the API. Empty fields are left
out, so a view sees at once which were not filled in.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from belfry.console.asking import ApiRefusal

FORM: Final = "application/x-www-form-urlencoded"


def check_origin(request: Request) -> None:
    """Refuse a form that no page of this worker has sent; raises `Refused`."""
    origin = request.headers.get("origin", "")
    ours = urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    if not origin or not ours or request.headers.get("hx-request") != "true":
        raise ApiRefusal(
            HTTPStatus.FORBIDDEN,
            "foreign_form",
            "Forms are taken from this worker's own pages alone: open the console, and send it"
            " from there. Programs use the API under /v1.",
        )


async def posted(request: Request) -> dict[str, str]:
    """Fields of a form, without the empty ones; raises `Refused`."""
    check_origin(request)
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
        raise ApiRefusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "bad_form", f"A form is sent as {FORM}."
        )
    try:
        fields = parse_qsl((await request.body()).decode(), max_num_fields=50)
    except ValueError as error:
        raise ApiRefusal(HTTPStatus.BAD_REQUEST, "bad_form", f"This is no form: {error}.") from None
    return {name: value for name, value in fields if value.strip()}


def needed(fields: dict[str, str], name: str) -> str:
    """A field that has to be there; raises `Refused`."""
    if name not in fields:
        detail = f"The field {name} is empty: fill it in."
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "field_missing", detail)
    return fields[name]
