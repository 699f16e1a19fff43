"""Calendars in the console: looked at, set and forgotten."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from tests.unit.console.conftest import FORM, HOSTILE, FakeApi

PAGE = "/console/calendars?tenant=t"


def changes(api: FakeApi) -> list[tuple[str, str, Any]]:
    return [(method, path, body) for method, path, _, body in api.asked if method != "GET"]


def test_the_calendars_of_a_tenant_are_shown(client: TestClient) -> None:
    page = client.get(PAGE).text
    assert "2 days off, from 2040-12-24 to 2040-12-25, and each SAT, SUN." in page
    assert "still being moved, 3 so far" in page
    assert HOSTILE not in page


def test_the_form_of_one_begins_with_its_days(client: TestClient) -> None:
    page = client.get(PAGE + "&calendar=de").text
    assert "2040-12-24\n2040-12-25</textarea>" in page
    assert page.count(" checked>") == 2
    assert " checked>" not in client.get(PAGE).text


def test_a_calendar_is_set(client: TestClient, api: FakeApi) -> None:
    given = {"tenant": "t", "calendar": "de at", "days": "2040-12-24\r\n 2040-12-31", "SUN": "yes"}
    answer = client.post("/console/calendars", data={**given, "reason": "law"}, headers=FORM)
    assert PAGE + "&calendar=de+at" in answer.headers["hx-location"]
    days = {"days": ["2040-12-24", "2040-12-31"], "weekend": ["SUN"], "source": "by hand"}
    assert [method for method, _, _ in changes(api)] == ["PUT"]
    assert changes(api)[0][2] == {**days, "reason": "law"}


def test_a_calendar_is_forgotten(client: TestClient, api: FakeApi) -> None:
    given = {"tenant": "t", "calendar": HOSTILE, "action": "forget"}
    client.post("/console/calendars", data=given, headers=FORM)
    ((method, path, _),) = changes(api)
    assert method == "DELETE"
    assert unquote(path) == f"/v1/tenants/t/calendars/{HOSTILE}"


def test_the_form_of_one_is_about_that_one_and_forgets_no_other(client: TestClient) -> None:
    page = client.get(PAGE + "&calendar=de").text
    assert 'name="calendar" value="de" required maxlength="255" readonly>' in page
    (dialog,) = re.findall(r'<dialog id="do-forget".*?</dialog>', page, re.DOTALL)
    assert 'type="hidden" name="calendar" value="de"' in dialog
    assert page.count('value="forget"') == dialog.count('value="forget"') == 1
    for other in (PAGE, PAGE + "&calendar=missing"):
        assert "forget" not in client.get(other).text
    assert " readonly>" not in client.get(PAGE).text


@pytest.mark.parametrize("role", ["read", "schedule"])
def test_who_may_only_look_gets_no_form(client: TestClient, api: FakeApi, role: str) -> None:
    api.role = role
    assert ("<textarea" in client.get(PAGE).text) == (role == "schedule")


def test_without_a_tenant_it_asks_for_one(client: TestClient, api: FakeApi) -> None:
    page = client.get("/console/calendars").text
    assert 'name="tenant"' in page
    assert [path for _, path, _, _ in api.asked] == ["/v1/me"]
