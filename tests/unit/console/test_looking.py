"""Views of the console that compute what they show: timeline, versions, payloads, policies."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from belfry.api.server.limits import MANY, WITHIN_S
from belfry.console import ASSETS
from belfry.console.policies import _given
from belfry.console.timeline import DAY, HOUR, MINUTE, MOST_TENANTS, TimeRange, _span
from belfry.console.versions import compared
from belfry.schedules.instants import parse_instant
from tests.unit.console.conftest import FORM, HOSTILE, SCHEDULE, TENANT, VIEWS, FakeApi

NOW_MS: Final = parse_instant("2030-01-01T09:00:00Z")
# Seconds from one refresh of an open page to the next.
EVERY_S: Final = (
    int(re.findall(r"const EVERY_MS = (\d+);", (ASSETS / "page.js").read_text())[0]) / 1000
)


def series(page: str) -> list[list[Any]]:
    found = re.search(r'data-series="([^"]+)"', page)
    assert found is not None
    told: list[list[Any]] = json.loads(found[1].replace("&#34;", '"'))
    return told


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        #  by        from                 until               shown
        ((None, None, None), TimeRange(NOW_MS - 15 * MINUTE, NOW_MS + HOUR, "minute")),
        (
            ("day", None, None),
            TimeRange(NOW_MS - 7 * DAY - 9 * HOUR, NOW_MS + 60 * DAY - 9 * HOUR, "day"),
        ),
        (("hour", NOW_MS + 1, NOW_MS + 2), TimeRange(NOW_MS, NOW_MS + HOUR, "hour")),
        # What a drag over the chart asks for: the step follows from the width.
        ((None, NOW_MS, NOW_MS + 2 * HOUR), TimeRange(NOW_MS, NOW_MS + 2 * HOUR, "minute")),
        ((None, NOW_MS, NOW_MS + 3 * DAY), TimeRange(NOW_MS, NOW_MS + 3 * DAY, "hour")),
        ((None, 0, 300 * DAY), TimeRange(0, 300 * DAY, "day")),
        (("minute", 0, 300 * DAY), TimeRange(0, 400 * MINUTE, "minute")),
    ],
)
def test_a_span_is_what_the_address_says(given: tuple[Any, ...], expected: TimeRange) -> None:
    step, start, until = (None if each is None else str(each) for each in given)
    assert _span(step, start, until, NOW_MS) == expected


def test_the_chart_has_the_load_to_come_and_on_its_left_how_late_what_fired(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.console.timeline.time", lambda: NOW_MS / 1000)
    instants, due, fired, late = series(client.get("/console/timeline?tenant=t").text)
    at = instants.index(NOW_MS / 1000)
    assert (due[at], late[at]) == (4, None)
    assert (due[at - 1], late[at - 1]) == (None, 7)
    assert fired == [None] * len(instants)
    instants, due, fired, late = series(client.get("/console/timeline?tenant=t&by=hour").text)
    at = instants.index((NOW_MS - HOUR) / 1000)
    assert (due[at + 1], fired[at], late[at]) == (4, 9, 7)


def test_without_a_tenant_those_with_the_most_are_added_up(
    client: TestClient, api: FakeApi
) -> None:
    page = client.get("/console/timeline").text
    asked = [(path, told) for _, path, _, told in api.asked if path == "/v1/tenants"]
    assert asked == [("/v1/tenants", {"limit": "8", "sort": "pending", "at_once": "true"})]
    assert 'id="by-tenant"' in page


@pytest.mark.parametrize("path", [*VIEWS, "/console/timeline"])
def test_ten_open_consoles_are_few_calls(
    client: TestClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Partitions pause while many calls come, so what fires would be late by that."""
    found, page_s = api.found, EVERY_S / 10
    most = {"/v1/tenants": {**found("/v1/tenants"), "figures": [TENANT] * MOST_TENANTS}}
    monkeypatch.setattr(api, "found", lambda asked: most.get(asked) or found(asked))
    assert client.get(path).status_code == 200
    # The page itself, and what it asks for; two of the consoles may ask at once.
    assert 2 * (1 + len(api.asked)) * WITHIN_S / page_s < MANY


def test_versions_show_what_each_changed(client: TestClient) -> None:
    page = client.get("/console/versions?tenant=t&id=a").text
    newest, oldest = page.split("Version 3")
    assert "<del>payload_text: before</del>" in newest
    assert "<ins>payload_text: &lt;img" in newest
    assert "cron" not in newest.split("Version 4")[1]
    assert "cron: 0 9 * * *" in oldest
    assert "<ins>" not in oldest


def test_a_request_of_another_schedule_is_no_version(client: TestClient) -> None:
    page = client.get("/console/versions?tenant=t&id=other").text
    assert "payload_text" not in page
    assert "kept no longer" in page


def test_versions_are_compared_line_by_line() -> None:
    before = {"action": "CREATE", "payload_text": "a\nb\nc", "max_fires": 2}
    after = {"action": "UPSERT", "payload_text": "a\nB\nc", "max_fires": 2, "reason": "why"}
    assert compared(before, after) == [("-", "    b"), ("+", "    B")]
    assert compared(before, before) == []
    assert compared(before, None) is None


def test_how_all_fires_went_stands_above_the_last(client: TestClient, api: FakeApi) -> None:
    assert 'id="fires"' not in client.get("/console/schedule?tenant=t&id=a").text
    api.schedule = {**SCHEDULE, "fires": {"words": "3 fired, each <within a second"}}
    page = client.get("/console/schedule?tenant=t&id=a").text
    assert "Since the rule is as it is, 3 fired, each &lt;within a second." in page


@pytest.mark.parametrize("coded", ["AAAAAAcC", "wwHwAAAAAAAAAAc="])
def test_a_payload_in_avro_is_shown_by_its_schema(
    client: TestClient, api: FakeApi, coded: str
) -> None:
    api.schedule = {**SCHEDULE, "payload_text": None, "payload_base64": coded}
    page = client.get("/console/schedule?tenant=t&id=a").text
    told = [told for _, path, _, told in api.asked if path == "/v1/decode"]
    assert told == [{"value_base64": coded}]
    assert re.findall(r"<summary>(\w+)", page) == ["Avro", "Hex"]


def test_a_payload_without_the_id_of_a_schema_is_not_asked_about(
    client: TestClient, api: FakeApi
) -> None:
    client.get("/console/schedule?tenant=t&id=a")
    assert "/v1/decode" not in [path for _, path, _, _ in api.asked]


def test_a_policy_is_changed_as_a_whole_under_the_version_that_was_seen(
    client: TestClient, api: FakeApi
) -> None:
    fields = {"tenant": "t", "etag": '"7.3"', "whole": "yes", "paused": "false", "priority": "5"}
    answer = client.post("/console/policy", data=fields, headers=FORM)
    assert answer.status_code == 204
    method, path, headers, told = api.asked[-1]
    assert (method, path, headers["if-match"]) == ("PUT", "/v1/tenants/t", '"7.3"')
    # What the form shows and is empty is the default; what it does not show goes back as it was.
    assert (told["paused"], told["priority"], told["output_topic"]) == (False, 5, None)
    assert told["http_targets"] == [{"url": "https://hunter2.example"}]
    assert "look_back_ms" not in told


def test_the_cluster_lists_take_overs_the_latest_first(client: TestClient) -> None:
    page = client.get("/console/cluster").text
    rows = page[page.index('id="moves-title"') :].split("<tr>")[2:]
    assert [re.findall(r'<td class="number">(.*?)</td>', row) for row in rows] == [
        ["4", "2 s", "–"],
        ["3", "250 ms", "12"],
    ]
    assert "Its owner was silent" in rows[1]
    # A cause of a later release is shown as it is told.
    assert "alert(1)" in rows[0]


@pytest.mark.parametrize("address", ["/console/deliveries", "/console/deliveries?tenant=t"])
def test_hosts_that_are_not_posted_to_are_shown_to_who_may_see_all(
    client: TestClient, api: FakeApi, address: str
) -> None:
    page = client.get(address).text
    assert "does not answer" in page
    assert "with its next delivery" in page
    # One that is broken is closed; one whose breaker is open may be broken for longer.
    assert re.findall(r'data-opens="host-(\w+)-(\d)"', page) == [
        ("close", "1"),
        ("break", "1"),
        ("close", "2"),
    ]
    api.role = "read"
    assert "data-opens" not in client.get(address).text
    api.tenants = ["t"]
    assert "hosts-title" not in client.get(address).text


@pytest.mark.parametrize(("action", "query"), [("break", {"minutes": "5"}), ("close", {})])
def test_a_host_is_broken_and_closed_with_a_reason(
    client: TestClient, api: FakeApi, action: str, query: dict[str, str]
) -> None:
    fields = {"host": "h/1:2", "action": action, "minutes": "5", "reason": "moves", "tenant": "t"}
    answer = client.post("/console/host", data=fields, headers=FORM)
    assert api.asked[-1][:2] == ("POST", f"/v1/delivery-hosts/h/1:2/{action}")
    assert api.queries[-1] == {**query, "reason": "moves"}
    shown = f"tenant=t&host=h%2F1%3A2&acted={action}"
    assert shown in answer.headers["hx-location"]


def test_a_change_of_a_policy_goes_with_its_reason(client: TestClient, api: FakeApi) -> None:
    for page in ("/console/policy?tenant=t", "/console/tenants?tenant=t"):
        assert 'name="reason"' in client.get(page).text
    fields = {"tenant": "t", "etag": '"7.3"', "paused": "true", "reason": "month end"}
    client.post("/console/policy", data=fields, headers=FORM)
    assert api.queries[-1] == {"reason": "month end"}


def test_a_pause_changes_nothing_else(client: TestClient, api: FakeApi) -> None:
    fields = {"tenant": "t", "etag": '"7.3"', "paused": "true"}
    client.post("/console/policy", data=fields, headers=FORM)
    told = api.asked[-1][3]
    assert (told["paused"], told["output_topic"]) == (True, HOSTILE)


def test_a_policy_that_was_made_meanwhile_is_not_overwritten(
    client: TestClient, api: FakeApi
) -> None:
    answer = client.post("/console/policy", data={"tenant": "t", "paused": "true"}, headers=FORM)
    assert answer.status_code == 412
    assert all(method == "GET" for method, *_ in api.asked)


def test_numbers_of_a_policy_are_numbers_and_the_rest_is_the_apis_to_refuse() -> None:
    given = {"max_pending": "10", "max_fires_per_second": "2.5", "priority": "high"}
    assert _given(given) == {"max_pending": 10, "max_fires_per_second": 2.5, "priority": "high"}


@pytest.mark.parametrize("number", ["nan", "inf", "-Infinity", "1e999"])
def test_a_number_that_json_cannot_hold_is_refused_with_a_sentence(
    client: TestClient, api: FakeApi, number: str
) -> None:
    fields = {"tenant": "t", "etag": '"7.3"', "max_fires_per_second": number}
    answer = client.post("/console/policy", data=fields, headers=FORM)
    assert answer.status_code == 422
    assert f"max_fires_per_second is {number}, which JSON cannot hold" in answer.text
    assert all(method == "GET" for method, *_ in api.asked)


def test_who_is_not_the_platform_leaves_out_what_only_that_sets(
    client: TestClient, api: FakeApi
) -> None:
    api.role = "admin"
    form = client.get("/console/policy?tenant=t").text
    assert re.search(r'name="max_pending"[^>]* disabled', form)
    assert not re.search(r'name="retry_max_ms"[^>]* disabled', form)
    fields = {"tenant": "t", "etag": '"7.3"', "whole": "yes", "paused": "false"}
    client.post("/console/policy", data=fields, headers=FORM)
    told = api.asked[-1][3]
    assert told["paused"] is False
    assert {"max_pending", "output_topic", "spread"}.isdisjoint(told)


@pytest.mark.parametrize(
    "address", ["/", "/console/cluster", "/console/tenants", "/console/deliveries"]
)
def test_no_view_waits_for_a_late_worker_and_each_says_whose_last_answer_it_shows(
    client: TestClient, api: FakeApi, address: str
) -> None:
    page = client.get(address).text
    assert re.search(r"late has not answered in time: it is shown as of .* ago\.</p>", page)
    asked = ("/v1/cluster", "/v1/tenants", "/v1/delivery-hosts")
    told = [told.get("at_once") for _, path, _, told in api.asked if path in asked]
    assert set(told) == {"true"}
