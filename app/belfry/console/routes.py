"""Addresses of the console, and how a request to one of them becomes an answer.

    browser                         here                          API, inside the process
    GET /console/schedule?…    ───► `Pages`: is there a key?
                                    the view of this address ───► GET /v1/me, …/schedules/…, …
                                    its template, rendered   ◄─── JSON
                               ◄─── HTML

Three more things may come of it:

- *There is no key, and one is needed.* The answer is an empty page, which fetches itself once the
  key is there. The API is not asked before, so that opening the console does not count as a wrong
  key.
- *The API refuses.* Its sentence is shown as it is, with its status, by one template for all views.
- *A form has done its work.* Its view answers by itself, and leads to another page (`gone_to`).

Names of tenants and ids stand behind the question mark and never in a path, so any id can be linked
to. GET changes nothing; changes are forms, sent by POST. Templates escape all values, and one that
lacks a value fails instead of showing an empty place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from belfry.console import (
    TEMPLATES,
    bulk,
    calendars,
    creating,
    editing,
    hosts,
    kept,
    one_schedule,
    overview,
    places,
    policies,
    redriving,
    schedules,
    timeline,
    versions,
    words,
)
from belfry.console.asking import Api, ApiRefusal
from belfry.console.page import HEADERS, View


def console_routes(app: ASGIApp, *, is_open: bool) -> APIRouter:
    """Routes of all views; `app` answers the API's, `is_open` says that nobody needs a key."""
    pages = Pages(app, is_open)
    routes = APIRouter(include_in_schema=False)
    views: dict[str, View] = {
        "/": overview.view,
        "/console/schedules": schedules.view,
        "/console/schedule": one_schedule.view,
        "/console/versions": versions.view,
        "/console/timeline": timeline.view,
        "/console/create": creating.view,
        "/console/edit": editing.view,
        "/console/bulk": bulk.view,
        "/console/job": bulk.job,
        "/console/tenants": places.tenants,
        "/console/policy": policies.view,
        "/console/calendars": calendars.view,
        "/console/cluster": places.cluster,
        "/console/rejections": kept.rejections,
        "/console/redrive": redriving.view,
        "/console/deliveries": kept.deliveries,
    }
    forms: dict[str, View] = {
        "/console/act": one_schedule.act,
        "/console/create": creating.create,
        "/console/preview": creating.preview,
        "/console/edit": editing.save,
        "/console/bulk": bulk.begin,
        "/console/job-stop": bulk.stop,
        "/console/edit-preview": editing.preview,
        "/console/first": creating.first,
        "/console/replay": kept.replay,
        "/console/redrive": redriving.send,
        "/console/host": hosts.act,
        "/console/policy": policies.save,
        "/console/calendars": calendars.act,
    }
    for path, view in views.items():
        routes.add_api_route(path, pages.route(view), methods=["GET"], response_model=None)
    for path, view in forms.items():
        routes.add_api_route(path, pages.route(view), methods=["POST"], response_model=None)
    return routes


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
        """The refusal of the API, in its own words; the form for a key if the API asks for one."""
        if refused.status == HTTPStatus.UNAUTHORIZED:
            return self._locked(refused.status, str(refused))
        shown = {"status": refused.status, "code": refused.code, "detail": str(refused)}
        return self._render("refused.html", refused.status, shown)

    def _locked(self, status: int, detail: str) -> Response:
        """The page that asks for a key, and says why."""
        return self._render("locked.html", status, {"detail": detail})

    def _render(self, name: str, status: int, shown: dict[str, Any]) -> Response:
        """A template with its values."""
        text = self._templates.get_template(name).render(keyed=not self._is_open, **shown)
        return HTMLResponse(text, status, dict(HEADERS))
