"""A view becomes an answer: templates, headers, refusals, and the form for a key.

Templates escape all that they show.  The policy of content lets nothing but this worker's own files
run or style, and no page may frame this one.  A caller who has to show a key and shows none is
answered with an empty page that fetches itself once the key is there; the API is not asked before,
so that opening the console does not count as a wrong key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from belfry.console import TEMPLATES, words
from belfry.console.asking import Api, ApiRefusal

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "vary": "authorization",
}
# A view: the name of its template, and what that shows.
Shown = tuple[str, dict[str, Any]]
View = Callable[[Api, Request], Awaitable[Shown | Response]]


class Pages:
    """Makes answers of views."""

    def __init__(self, app: ASGIApp, is_open: bool) -> None:
        """`app` answers the API's routes; `is_open` says that nobody has to show a key."""
        self._app = app
        self._is_open = is_open
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "utc": words.in_utc,
            "in_zone": words.in_zone,
            "duration": words.duration,
        }

    def route(self, view: View) -> Callable[[Request], Awaitable[Response]]:
        """The handler of a route that shows a view."""

        async def handle(request: Request) -> Response:
            if not self._is_open and "authorization" not in request.headers:
                return self._locked(HTTPStatus.OK, "")
            try:
                shown = await view(Api(self._app, request), request)
            except ApiRefusal as refused:
                return self._refused(refused)
            if isinstance(shown, Response):
                return shown
            return self._render(shown[0], HTTPStatus.OK, shown[1])

        return handle

    def _refused(self, refused: ApiRefusal) -> Response:
        if refused.status == HTTPStatus.UNAUTHORIZED:
            return self._locked(refused.status, str(refused))
        shown = {"status": refused.status, "code": refused.code, "detail": str(refused)}
        return self._render("refused.html", refused.status, shown)

    def _locked(self, status: int, detail: str) -> Response:
        return self._render("locked.html", status, {"detail": detail})

    def _render(self, name: str, status: int, shown: dict[str, Any]) -> Response:
        text = self._templates.get_template(name).render(keyed=not self._is_open, **shown)
        return HTMLResponse(text, status, dict(HEADERS))


def gone_to(address: str) -> Response:
    """The answer to a form that leads htmx to another page."""
    place = {"path": address, "target": "#main", "select": "#main", "swap": "outerHTML"}
    headers = {**HEADERS, "hx-location": orjson.dumps(place).decode()}
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
