"""Changes in the console: one schedule edited, and many that filters find acted on."""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from belfry.schedules.fields import FIELDS
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
    body, _ = edited(client, api, priority="-3")
    assert body["priority"] == -3


def test_a_form_creates_a_schedule_with_a_priority(client: TestClient, api: FakeApi) -> None:
    form = {"tenant": "t", "id": "a", "kind": "delay_ms", "when": "5000", "priority": "9"}
    client.post("/console/create", data=form, headers=FORM)
    wanted = {"schedule_id": "a", "delay_ms": 5000, "priority": 9}
    assert [body for method, _, _, body in api.asked if method == "POST"] == [wanted]


def test_a_form_creates_with_all_that_says_how_it_fires(client: TestClient, api: FakeApi) -> None:
    counts = {"jitter_ms": 1, "max_lateness_ms": 2, "throttle_ms": 3, "concurrency": 4}
    counts |= {"ack_timeout_ms": 5}
    ways = {"misfire": "FIRE_ALL", "overlap": "QUEUE_ALL", "start_at": "2040-01-01T09:00:00Z"}
    page = client.get("/console/create").text
    assert {each for each in (*counts, *ways) if f'name="{each}"' not in page} == set()
    for way in (*FIELDS["misfire"].symbols, *FIELDS["overlap"].symbols):
        assert f">{way}</option>" in page
    form = {"tenant": "t", "id": "a", "kind": "cron", "when": "0 9 * * *", **ways}
    client.post("/console/create", data=form | {k: str(v) for k, v in counts.items()}, headers=FORM)
    (body,) = [body for method, _, _, body in api.asked if method == "POST"]
    assert body == {"schedule_id": "a", "cron": "0 9 * * *", **ways, **counts}


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


BULK: Final = {
    "tenant": "t", "group": "g", "action": "PAUSE", "found": "4", "confirmed": "4", "reason": "why",
}  # fmt: skip


def test_what_is_counted_is_what_an_action_is_for(client: TestClient, api: FakeApi) -> None:
    page = client.get("/console/bulk?tenant=t&group=g&action=PAUSE").text
    assert re.findall(r'name="found" value="(\d+)"', page) == ["4"]
    counted = [told for method, path, _, told in api.asked if method == "POST"]
    assert counted == 2 * [{"action": "PAUSE", "group": "g", "state": "PENDING"}]


def test_a_confirmed_number_begins_a_job_and_leads_to_it(client: TestClient, api: FakeApi) -> None:
    answer = client.post("/console/bulk", data=BULK, headers=FORM)
    assert json.loads(answer.headers["hx-location"])["path"] == "/console/job?tenant=t&job=j"
    (asked,) = api.asked
    assert asked[:2] == ("POST", "/v1/tenants/t/jobs")
    assert asked[3] == {"action": "PAUSE", "group": "g", "state": "PENDING", "reason": "why"}


@pytest.mark.parametrize(("by", "move_ms"), [("1h30m", 5_400_000), ("-5m", -300_000)])
def test_a_move_is_by_a_duration(client: TestClient, api: FakeApi, by: str, move_ms: int) -> None:
    moved = {**BULK, "action": "MOVE", "move": by}
    assert client.post("/console/bulk", data=moved, headers=FORM).status_code == 204
    assert api.asked[-1][3] == {
        "action": "MOVE", "group": "g", "move_ms": move_ms, "reason": "why",
    }  # fmt: skip


def test_the_page_of_a_backfill_has_its_range_and_what_has_fired(
    client: TestClient, api: FakeApi
) -> None:
    assert "Occurrences" not in client.get("/console/job?tenant=t&job=j").text
    days = {"range_from": "2026-01-01T00:00:00.000Z", "range_until": "2026-01-03T00:00:00.000Z"}
    api.job = {**api.job, "action": "BACKFILL", "move_ms": None, "fired": 1_234, **days}
    page = client.get("/console/job?tenant=t&job=j").text
    assert "<h1>Backfill of t</h1>" in page
    (occurrences,) = re.findall(r"<dt>Occurrences</dt><dd>(.+)</dd>", page)
    assert re.findall(r'datetime="([^"]+)"', occurrences) == list(days.values())
    (fired,) = re.findall(r"<dt>Fired</dt><dd>(.+?)</dd>", page)
    assert re.sub(r"\D", "", fired) == "1234"


def test_a_job_is_stopped_with_a_reason(client: TestClient, api: FakeApi) -> None:
    fields = {"tenant": "t", "job": "j", "reason": "enough"}
    answer = client.post("/console/job-stop", data=fields, headers=FORM)
    assert json.loads(answer.headers["hx-location"])["path"] == "/console/job?tenant=t&job=j"
    method, path, _, told = api.asked[-1]
    assert (method, path, told) == ("DELETE", "/v1/tenants/t/jobs/j", {"reason": "enough"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"confirmed": ""}, {"confirmed": "3"}, {"confirmed": "x"}, {"found": ""},
        {"action": "EXPLODE"}, {"action": "MOVE"}, {"action": "MOVE", "move": "soon"},
    ],
)  # fmt: skip
def test_nothing_is_done_that_was_not_confirmed_or_is_not_understood(
    client: TestClient, api: FakeApi, wrong: dict[str, str]
) -> None:
    answer = client.post("/console/bulk", data={**BULK, **wrong}, headers=FORM)
    assert answer.status_code == 422
    assert not api.asked


RANGE: Final = {"range_from": "2026-12-01T00:00:00Z", "range_until": "2026-12-02T00:00:00Z"}


def test_what_could_be_sent_again_is_counted_with_the_fields_of_its_kind(
    client: TestClient, api: FakeApi
) -> None:
    asked = {"tenant": "t", **RANGE, "code": "bad_cron", "prefix": "p/", "name": ""}
    page = client.get("/console/redrive", params={"what": "rejected", **asked}).text
    client.get("/console/redrive", params={"what": "fires", **asked})
    counts = [told for method, _, _, told in api.asked if method == "POST"]
    assert counts == [
        {"what": "rejected", **RANGE, "code": "bad_cron"},
        {"what": "fires", **RANGE, "prefix": "p/"},
    ]
    assert [each for each in api.queries if "dry" in each] == 2 * [{"dry": "true"}]
    # What is sent next is what was counted, up to the same end.
    assert f'name="range_until" value="{api.redriven["range_until"]}"' in page
    client.get("/console/redrive", params={"tenant": "t"})
    assert [method for method, *_ in api.asked].count("POST") == 2


def test_some_are_sent_and_the_page_shows_what_is_left(client: TestClient, api: FakeApi) -> None:
    fields = {"tenant": "t", "what": "fires", **RANGE, "schedule_id": "a/b", "reason": "lost"}
    answer = client.post("/console/redrive", data=fields, headers=FORM)
    method, path, _, told = api.asked[-1]
    assert (method, path) == ("POST", "/v1/tenants/t/redrives")
    assert told == {"what": "fires", **RANGE, "schedule_id": "a/b", "reason": "lost"}
    assert api.queries[-1] == {}
    place = urlsplit(json.loads(answer.headers["hx-location"])["path"])
    assert place.path == "/console/redrive"
    shown = dict(parse_qsl(place.query))
    assert (shown["sent"], shown["schedule_id"]) == ("2", "a/b")
    assert shown["range_until"] == api.redriven["range_until"]
    assert "2 were sent, each once." in client.get(f"/console/redrive?{place.query}").text


def test_who_may_only_read_counts_and_sees_no_form_to_send_again(
    client: TestClient, api: FakeApi
) -> None:
    asked = {"tenant": "t", **RANGE}
    told = "which counts and sends nothing"
    assert told not in client.get("/console/redrive", params=asked).text
    api.role = "read"
    page = client.get("/console/redrive", params=asked).text
    assert "redrive-go" not in page
    assert "redrive-count" in page
    assert "would be sent" in page
    assert told in page
    assert told not in client.get("/console/redrive", params={"tenant": "t"}).text
    assert "Send refused requests again" not in client.get("/console/rejections?tenant=t").text
