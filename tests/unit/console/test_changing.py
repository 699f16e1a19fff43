"""Changes in the console: one schedule edited, and many that filters find acted on."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from tests.unit.console.conftest import FORM, HOSTILE, SCHEDULE, SHOWN, FakeApi

EDITED: Final = {
    "tenant": "t", "id": "a/b", "etag": '"7.3"', "kind": "keep", "timezone": "Europe/Paris",
    "event_type": "e", "reason": "why",
}  # fmt: skip


def edited(client: TestClient, api: FakeApi, **fields: str) -> tuple[dict[str, Any], str]:
    """The definition that saving a form asks for, and its `If-Match`."""
    answer = client.post("/console/edit", data={**EDITED, **fields}, headers=FORM)
    assert answer.status_code == 204, answer.text
    assert json.loads(answer.headers["hx-location"])["path"] == SHOWN
    method, path, headers, body = api.asked[-1]
    assert (method, path) == ("PUT", "/v1/tenants/t/schedules/a/b")
    return body, headers["if-match"]


def test_an_edit_changes_what_the_form_says_and_keeps_the_rest(
    client: TestClient, api: FakeApi
) -> None:
    body, match = edited(client, api, payload=HOSTILE)
    assert match == '"7.3"'
    assert body == {
        "cron": "0 9 * * *", "timezone": "Europe/Paris", "event_type": "e", "reason": "why",
        "payload_text": HOSTILE, "http_targets": SCHEDULE["http_targets"],
    }  # fmt: skip
    body, _ = edited(client, api, kind="interval_ms", when="5000", group="g", payload='{"a":1}')
    assert (body["interval_ms"], body["group"], body["payload_text"]) == (5000, "g", '{"a":1}')
    assert "cron" not in body


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ({"payload_text": "a\nb"}, "a\r\nb", {"payload_text": "a\nb"}),
        ({"payload_text": "a\r\nb"}, "a\r\nb", {"payload_text": "a\r\nb"}),
        ({"payload_text": "a"}, "c\r\nd", {"payload_text": "c\nd"}),
        ({"payload_text": "a"}, "", {}),
        ({"payload_base64": "/w=="}, "", {"payload_base64": "/w=="}),
        ({"payload_text": "x" * 70_000}, "", {"payload_text": "x" * 70_000}),
    ],
)
def test_a_payload_that_nobody_touched_stays_as_it_was(
    client: TestClient, api: FakeApi, before: Any, given: str, after: Any
) -> None:
    api.schedule = {k: v for k, v in SCHEDULE.items() if k != "payload_text"} | before
    body, _ = edited(client, api, payload=given)
    assert {name: body[name] for name in body if name.startswith("payload")} == after


def test_an_edit_that_came_too_late_is_told(client: TestClient, api: FakeApi) -> None:
    api.refused = "PUT"
    answer = client.post("/console/edit", data=EDITED, headers=FORM)
    assert answer.status_code == 412
    assert "Somebody else was quicker" in answer.text
    api.asked.clear()
    without = {name: value for name, value in EDITED.items() if name != "etag"}
    assert client.post("/console/edit", data=without, headers=FORM).status_code == 422
    assert not api.asked


def test_a_new_rule_is_previewed_before_it_is_saved(client: TestClient, api: FakeApi) -> None:
    page = client.post("/console/edit-preview", data=EDITED, headers=FORM)
    assert "&lt;img src=x" in page.text
    method, path, _, body = api.asked[-1]
    assert (method, path) == ("POST", "/v1/preview")
    names = {"tenant": "t", "schedule_id": "a/b"}
    assert body == {"cron": "0 9 * * *", "timezone": "Europe/Paris", **names}


BULK: Final = {"tenant": "t", "group": "g", "action": "pause", "found_pause": "3", "reason": "why"}


def test_what_is_counted_is_what_an_action_is_for(client: TestClient, api: FakeApi) -> None:
    api.listed = [
        {**SCHEDULE, "state": state} for state in ("PENDING", "PENDING", "PAUSED", "FIRED")
    ]
    page = client.get("/console/bulk?tenant=t&group=g").text
    found = dict(re.findall(r'name="found_(\w+)" value="(\d+)"', page))
    # The list of the fake never ends; it is read so often and no more.
    assert found == {"pause": "40", "resume": "20", "cancel": "60"}
    assert "There are more than could be counted" in page
    asked = [told for _, path, _, told in api.asked if path.endswith("/schedules")]
    assert len(asked) == 20
    assert {(each["group"], each["limit"]) for each in asked} == {("g", "1000")}


def test_each_schedule_of_a_page_has_an_outcome(client: TestClient, api: FakeApi) -> None:
    states = ("PENDING", "PAUSED", "PENDING", "PENDING", "PENDING")
    api.listed = [
        {**SCHEDULE, "schedule_id": f"s{n}", "state": state} for n, state in enumerate(states)
    ]
    page = client.post("/console/bulk", data={**BULK, "confirmed": "3"}, headers=FORM).text
    asked = [each for each in api.asked if each[0] == "POST"]
    # No more than were confirmed, and only those in the state that the action is for.
    assert {path for _, path, _, _ in asked} == {
        f"/v1/tenants/t/schedules/s{n}/pause" for n in (0, 2, 3)
    }
    assert {headers["if-match"] for _, _, headers, _ in asked} == {'"7.3"'}
    assert [told for *_, told in asked] == 3 * [{"reason": "why"}]
    assert page.count("<td>PAUSED</td>") == 3
    assert "This is the end." in page
    assert 'hx-trigger="load"' not in page


def test_a_page_leads_to_the_next_and_carries_what_became(client: TestClient, api: FakeApi) -> None:
    api.listed = [{**SCHEDULE, "schedule_id": "s"}]
    api.refused = "POST"
    page = client.post("/console/bulk", data={**BULK, "confirmed": "3"}, headers=FORM).text
    carried = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
    assert carried["cursor"] == "more"
    assert json.loads(carried.pop("done").replace("&#34;", '"')) == {"CONFLICT": 1}
    assert carried == {**BULK, "confirmed": "3", "cursor": "more"}
    client.post("/console/bulk", data={**carried, "done": '{"CONFLICT":1}'}, headers=FORM)
    told = [told for _, path, _, told in api.asked if path == "/v1/tenants/t/schedules"]
    assert [each.get("cursor") for each in told] == [None, "more"]
    assert [each["limit"] for each in told] == ["3", "2"]


@pytest.mark.parametrize("confirmed", ["", "2", "4", "x", "-3"])
def test_nothing_is_done_that_was_not_confirmed(
    client: TestClient, api: FakeApi, confirmed: str
) -> None:
    answer = client.post("/console/bulk", data={**BULK, "confirmed": confirmed}, headers=FORM)
    assert answer.status_code == 422
    assert not api.asked
