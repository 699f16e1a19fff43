"""Addresses of the console.

Names of tenants and ids stand behind the question mark, so any id can be linked to.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.types import ASGIApp

from belfry.console import (
    bulk,
    creating,
    editing,
    kept,
    one_schedule,
    overview,
    places,
    policies,
    schedules,
    timeline,
    versions,
)
from belfry.console.page import Pages, View


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
        "/console/cluster": places.cluster,
        "/console/rejections": kept.rejections,
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
        "/console/policy": policies.save,
    }
    for path, view in views.items():
        routes.add_api_route(path, pages.route(view), methods=["GET"], response_model=None)
    for path, view in forms.items():
        routes.add_api_route(path, pages.route(view), methods=["POST"], response_model=None)
    return routes
