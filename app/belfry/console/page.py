"""The result of a view: a template with its values, or an answer of its own.

A view is a function of the API and the request, so a test calls it without a browser. It knows no
template language and no header; those are here and in `routes.py`, once for all views.

The headers of every page are here too. `default-src 'none'` forbids all other sources, and scripts
and styles are named as `'self'`: this worker's files, and no inline ones. `frame-ancestors 'none'`
and `x-frame-options` keep strange pages from laying this one under their own. `no-store` keeps
pages out of the browser's cache, and `vary` says that a page belongs to its key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "vary": "authorization",
}
# A view: the name of its template, and the values for it.
Shown = tuple[str, dict[str, Any]]
View = Callable[[Api, Request], Awaitable[Shown | Response]]


def gone_to(address: str) -> Response:
    """The answer to a form that leads htmx to another page."""
    place = {"path": address, "target": "#main", "select": "#main", "swap": "outerHTML"}
    headers = {**HEADERS, "hx-location": orjson.dumps(place).decode()}
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
