"""Every action of the console asks for a reason, and hands it on with what it asks the API for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from belfry.console.one_schedule import ACTIONS
from belfry.console.routes import console_routes
from tests.unit.console.conftest import FORM, VIEWS, FakeApi

ONE = {"tenant": "t", "id": "a", "etag": '"7.3"'}
# What each form sends; an action of a schedule is one of several.
FORMS: dict[str, list[dict[str, str]]] = {
    "act": [{**ONE, "action": each, "fire_id": "0f" * 16} for each in ACTIONS],
    "create": [{**ONE, "kind": "cron", "when": "0 9 * * *"}],
    "edit": [{**ONE, "kind": "cron", "when": "0 9 * * *"}],
    "bulk": [{"tenant": "t", "action": "PAUSE", "found": "4", "confirmed": "4"}],
    "job-stop": [{"tenant": "t", "job": "j"}],
    "replay": [{"tenant": "t", "id": "0-7"}],
    "redrive": [{"tenant": "t", "what": "fires", "range_from": "1"}],
    "host": [{"host": "h", "action": "break"}, {"host": "h", "action": "close"}],
    "calendars": [
        {"tenant": "t", "calendar": "de", "action": "set", "SUN": "yes"},
        {"tenant": "t", "calendar": "de", "action": "forget"},
    ],
    "policy": [{"tenant": "t", "etag": '"7.3"', "paused": "true"}],
}
FORM_WITH_FIELDS = re.compile(
    r'<form [^>]*action="/console/([a-z-]+)"[^>]* method="post"[^>]*>(.*?)</form>', re.DOTALL
)
# They change nothing; and the button of an empty console has a reason of its own.
LOOKS = {"preview", "edit-preview"}
CASES = [(form, fields) for form, given in FORMS.items() for fields in given]


def test_every_form_is_looked_at() -> None:
    routes: Any = console_routes(FakeApi().app, is_open=True).routes
    forms = {each.path.removeprefix("/console/") for each in routes if "POST" in each.methods}
    assert forms == FORMS.keys() | LOOKS | {"first"}


@pytest.mark.parametrize(("form", "fields"), CASES)
def test_the_reason_of_an_action_goes_to_the_api(
    client: TestClient, api: FakeApi, form: str, fields: dict[str, str]
) -> None:
    client.post(f"/console/{form}", data={**fields, "reason": "why"}, headers=FORM)
    method, path, _, told = api.asked[-1]
    assert method != "GET", path
    assert "why" in (told.get("reason"), api.queries[-1].get("reason")), path


def test_the_button_of_an_empty_console_has_a_reason(client: TestClient, api: FakeApi) -> None:
    client.post("/console/first", data={"any": "thing"}, headers=FORM)
    assert api.asked[-1][3]["reason"] == "the button of the empty console"


@pytest.mark.parametrize("path", VIEWS)
def test_every_form_that_changes_something_has_a_field_for_it(
    client: TestClient, path: str
) -> None:
    page = client.get(path).text
    for form, inside in FORM_WITH_FIELDS.findall(page):
        assert form == "first" or 'name="reason"' in inside, form
