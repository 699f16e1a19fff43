"""The console in a real browser, before a real worker: each view, actions, keys, both themes.

Chromium is Debian's; axe-core looks for what people who see or hear little cannot use.
"""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from belfry.api.auth.keys import digest
from tests.acceptance.harness.browser import (
    KEY,
    VIEWER,
    VIEWS,
    Tab,
    asked,
    by_schedule,
    confirm,
    deliveries,
    findings,
    shown_at_last,
)
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
HOSTILE: Final = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("console")
    with Site(kafka, f"console-{now_ms()}", home, LIFECYCLE="ALL") as site:
        yield site


@pytest.fixture(scope="module")
def worker(site: Site) -> Worker:
    keys = [
        {"name": "o", "sha256": digest(KEY), "tenants": ["*"], "role": "operate"},
        {"name": "v", "sha256": digest(VIEWER), "tenants": ["demo"], "role": "read"},
    ]
    return site.worker(HTTP_API_KEYS=json.dumps(keys)).start().wait_ready()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture
def tab(browser: Browser, worker: Worker) -> Iterator[Tab]:
    opened = Tab(browser, worker, KEY, timezone_id="Asia/Tokyo")
    yield opened
    opened.context.close()
    assert not opened.complaints


def test_the_empty_console_makes_a_first_schedule(tab: Tab) -> None:
    tab.page.click("#first")
    tab.page.wait_for_selector("h1:has-text('first')")
    assert "Asia/Tokyo" in tab.page.inner_text("main")


def test_a_schedule_is_previewed_over_a_change_of_clocks_and_created(tab: Tab) -> None:
    page = tab.page
    tab.open("/console/create?tenant=demo")
    page.fill("[name=id]", "daily")
    page.select_option("[name=kind]", "cron")
    page.fill("[name=when]", "30 2 * * *")
    page.fill("[name=timezone]", "Europe/Paris")
    page.fill("[name=payload]", HOSTILE)
    page.click("#preview-button")
    page.wait_for_selector("#preview li >> nth=9")
    page.click("#create-button")
    page.wait_for_selector("h1:has-text('daily')")
    assert page.inner_text("pre >> nth=0") == HOSTILE
    assert page.locator(".instants li").count() == 10


def test_actions_are_confirmed_and_show_what_became(tab: Tab, site: Site) -> None:
    tab.open("/console/schedule?tenant=demo&id=daily")
    confirm(tab.page, "pause")
    tab.page.wait_for_selector(".state:has-text('PAUSED')")
    confirm(tab.page, "resume")
    tab.page.wait_for_selector(".state:has-text('PENDING')")
    confirm(tab.page, "trigger")
    shown_at_last(tab, "/console/schedule?tenant=demo&id=daily", ".events", "TRIGGERED: a test")
    # The extra fire is there as well, besides the one of the first schedule.
    found = wait_for("the extra fire", lambda: by_schedule(site, b"daily"))
    assert [record.header("belfry-occurrence") for record in found] == [b"-1"]


def test_a_schedule_is_edited_unless_somebody_else_was_quicker(tab: Tab, worker: Worker) -> None:
    page = tab.page
    tab.open("/console/schedule?tenant=demo&id=daily")
    page.click("#edit")
    page.wait_for_selector("h1:has-text('Edit daily')")
    assert page.input_value("[name=payload]") == HOSTILE
    page.fill("[name=when]", "30 3 * * *")
    page.fill("[name=reason]", "later")
    page.click("#preview-button")
    page.wait_for_selector("#preview li >> nth=9")
    page.click("#save-button")
    page.wait_for_selector("h1:text-is('daily')")
    told = asked(worker, "GET", "demo/schedules/daily")
    assert (told["cron"], told["timezone"], told["version"]) == ("30 3 * * *", "Europe/Paris", 2)
    assert told["payload_text"] == HOSTILE
    tab.open("/console/edit?tenant=demo&id=daily")
    asked(worker, "PUT", "demo/schedules/daily", {"cron": "0 4 * * *", "payload_text": "theirs"})
    page.fill("[name=when]", "0 5 * * *")
    page.click("#save-button")
    page.wait_for_selector("text=Somebody else was quicker")
    assert asked(worker, "GET", "demo/schedules/daily")["cron"] == "0 4 * * *"
    # What the browser says of a refusal is no complaint of the page.
    tab.complaints = [each for each in tab.complaints if "412" not in each]


def test_versions_show_what_each_changed(tab: Tab, worker: Worker) -> None:
    tab.open("/console/schedule?tenant=demo&id=daily")
    tab.page.click("#versions")
    tab.page.wait_for_selector("h1:has-text('Versions of daily')")
    newest = tab.page.locator("section").first
    assert newest.locator("del").all_inner_texts()[0] == "cron: 30 3 * * *"
    assert newest.locator("ins").all_inner_texts()[0] == "cron: 0 4 * * *"
    assert HOSTILE in tab.page.locator("section").last.inner_text()
    first, *_ = asked(worker, "GET", "demo/schedules/daily/history")["events"]
    place = f"requests/{first['source_partition']}-{first['source_offset']}"
    assert asked(worker, "GET", f"demo/{place}")["schedule_id"] == "daily"
    # No tenant reads the requests of another one.
    with pytest.raises(AssertionError, match="not_found"):
        asked(worker, "GET", f"other/{place}")


def test_a_payload_is_shown_as_text_json_avro_and_hex(tab: Tab, worker: Worker) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "as-json": {"payload_json": {"a": [1, HOSTILE]}},
        "as-avro": {"payload_base64": b64encode(request("t", HOSTILE, kind="AT", at=1)).decode()},
        "as-hex": {"payload_base64": "/wD+"},
    }
    shown = {}
    for name, body in bodies.items():
        due = {"schedule_id": name, "at": "2040-01-01T09:00:00Z"}
        asked(worker, "POST", "demo/schedules", due | body)
        tab.open(f"/console/schedule?tenant=demo&id={name}")
        shown[name] = tab.page.locator("summary").all_inner_texts()
        assert HOSTILE in tab.page.inner_text("pre >> nth=0") or name == "as-hex"
    assert shown == {
        "as-json": ["Text", "JSON", "Hex"],
        "as-avro": ["Avro, io.belfry.ScheduleRequest", "Hex"],
        "as-hex": ["Hex"],
    }


def test_a_fire_is_acknowledged(tab: Tab, worker: Worker) -> None:
    body = {"schedule_id": "job", "delay_ms": 100, "group": "g", "serial": True}
    asked(worker, "POST", "demo/schedules", body)
    address = "/console/schedule?tenant=demo&id=job"
    shown_at_last(tab, address, ".panel", "waits to be acknowledged")
    tab.page.check(".panel [type=checkbox]")
    tab.page.fill(".panel [name=reason]", "done by hand")
    tab.page.click(".acknowledge")
    tab.page.wait_for_selector(".acknowledge", state="detached")
    assert asked(worker, "GET", "demo/locks")["locks"] == []


def test_many_are_counted_confirmed_and_paused(tab: Tab, worker: Worker) -> None:
    page = tab.page
    for number in range(3):
        body = {"schedule_id": f"many/{number}", "at": "2040-01-01T09:00:00Z"}
        asked(worker, "POST", "demo/schedules", body)
    tab.open("/console/schedules?tenant=demo&prefix=many/")
    page.click("#bulk")
    page.select_option("#bulk-action", "PAUSE")
    page.click("#bulk-count")
    page.wait_for_selector("h2:has-text('Pause 3')")
    page.fill("[name=confirmed]", "3")
    page.fill("[name=reason]", "a freeze")
    page.click("#bulk-go")
    # Its page follows it by itself.
    page.wait_for_selector("[role=status]:has-text('DONE: 3 done, 0 unchanged, 0 refused.')")
    assert "a freeze" in page.inner_text("main")
    assert not findings(tab)
    page.click("text=All jobs of demo")
    page.wait_for_selector("td:has-text('PAUSE')")
    assert asked(worker, "GET", "demo/schedules/many%2F1")["state"] == "PAUSED"


def test_a_rejected_request_is_shown_with_reason_source_and_sample(tab: Tab, site: Site) -> None:
    site.ask("demo", "bad", kind="CRON", cron=HOSTILE, payload=HOSTILE.encode())
    site.send(b"no request", key=b"k")
    shown_at_last(tab, "/console/rejections?tenant=demo", "h2", "bad_cron")
    tab.page.click("summary")
    assert HOSTILE in tab.page.inner_text("pre >> nth=0")
    assert site.topic("schedules") in tab.page.inner_text("main")
    assert "not_a_request" not in tab.page.inner_text("main")
    shown_at_last(tab, "/console/rejections", "h2", "not_a_request")


def test_a_late_event_and_its_cause_are_three_clicks_away(tab: Tab, worker: Worker) -> None:
    page = tab.page
    asked(worker, "PUT", "slow", {"paused": True})
    asked(worker, "POST", "slow/schedules", {"schedule_id": "late", "delay_ms": 0})
    # At first it waits for its topic to be made, as any new tenant's.
    late = partial(asked, worker, "GET", "slow/schedules/late")
    wait_for("the cause", lambda: late().get("waiting_cause") == "paused")
    tab.open("/")
    page.click(".tenants >> text=slow")
    page.click("tbody >> text=late")
    page.wait_for_selector(".state:has-text('its policy pauses it')")
    page.click("#policy")
    page.wait_for_selector(".state.bad:has-text('pauses this tenant')")


def test_a_dry_run_leaves_a_copy_and_changes_nothing(tab: Tab, site: Site) -> None:
    before = len(by_schedule(site, b"daily"))
    tab.open("/console/schedule?tenant=demo&id=daily")
    tab.page.click("[data-opens=do-dry-run]")
    tab.page.click("#do-dry-run .confirm")
    tab.page.wait_for_selector(".state.good:has-text('belfry-dry-run')")
    found = by_schedule(site, b"daily")
    assert [each.header("belfry-dry-run") for each in found[before:]] == [b"true"]


def test_a_tenant_is_paused_and_its_policy_changed_unless_somebody_was_quicker(
    tab: Tab, worker: Worker
) -> None:
    page = tab.page
    tab.open("/console/tenants?tenant=ruled")
    page.click("[data-opens=do-tenant]")
    page.click("#do-tenant .confirm")
    page.wait_for_selector(".state.bad:has-text('pauses this tenant')")
    page.click("#policy-edit")
    page.wait_for_selector("h1:has-text('Policy of ruled')")
    page.select_option("[name=paused]", "false")
    page.fill("[name=max_fires_per_second]", "2.5")
    page.click("#policy-save")
    page.wait_for_selector(".figures:has-text('2.5')")
    told = asked(worker, "GET", "ruled")
    assert (told["paused"], told["max_fires_per_second"]) == (False, 2.5)
    tab.open("/console/policy?tenant=ruled")
    asked(worker, "PUT", "ruled", {"max_fires_per_second": 7})
    page.fill("[name=max_fires_per_second]", "9")
    page.click("#policy-save")
    page.wait_for_selector("text=Somebody else was quicker")
    assert asked(worker, "GET", "ruled")["max_fires_per_second"] == 7
    tab.complaints = [each for each in tab.complaints if "412" not in each]


def test_a_drag_over_the_timeline_zooms(tab: Tab, worker: Worker) -> None:
    page = tab.page
    for minute in range(1, 50, 7):
        body = {"schedule_id": f"load/{minute}", "delay_ms": 60_000 * minute}
        asked(worker, "POST", "demo/schedules", body)
    tab.open("/console/timeline?tenant=demo")
    box = page.locator("#chart .u-over").bounding_box()
    assert box is not None
    # From a half to three quarters of an hour and a quarter.
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=5)
    page.mouse.up()
    page.wait_for_url("**/console/timeline?*from=*")
    query = parse_qs(urlsplit(page.url).query)
    width_ms = int(query["until"][0]) - int(query["from"][0])
    assert width_ms == pytest.approx(75 * 60_000 / 4, rel=0.05)
    rows = page.locator("section:has(#due-title) tbody tr").count()
    assert 2 <= rows <= 4


def test_a_delivery_that_was_given_up_goes_out_again(tab: Tab, site: Site, worker: Worker) -> None:
    target = {"url": "https://hooks.example.com/x"}
    body = {"schedule_id": "posted", "delay_ms": 0, "http_targets": [target]}
    asked(worker, "POST", "demo/schedules", body)
    (record,) = wait_for("the delivery", lambda: deliveries(site))
    # What a dispatcher writes when it gives up, without the minutes until it does.
    error = [("belfry-error-code", b"timeout"), ("belfry-error-reason", HOSTILE.encode())]
    headers: Any = [*record.headers, *error]
    site.producer.produce(site.topic("undelivered"), record.value, record.key, headers=headers)
    site.producer.flush(10)
    shown_at_last(tab, "/console/deliveries?tenant=demo", "tbody", HOSTILE)
    tab.page.click("button:has-text('Deliver again')")
    tab.page.wait_for_selector(".state.good:has-text('is on its way again')")
    again = wait_for("the second one", lambda: deliveries(site)[1:])
    # The same event, under the same fire id.
    assert again[0].value == record.value
    tab.break_and_close_host("other.example:8443", "o", HOSTILE)


def test_a_page_that_cannot_be_refreshed_says_so(tab: Tab) -> None:
    page = tab.page
    page.clock.install()
    tab.open("/")
    page.route("**/*fired=*", lambda route: route.abort())
    page.clock.run_for(6_000)
    page.wait_for_selector("#silent:has-text('does not answer')")
    page.unroute("**/*fired=*")
    page.clock.run_for(6_000)
    page.wait_for_selector("#silent", state="hidden")
    tab.complaints.clear()


def test_what_somebody_is_about_to_use_is_not_refreshed(tab: Tab) -> None:
    page = tab.page
    page.clock.install()
    tab.open("/console/schedule?tenant=demo&id=as-json")
    page.click("[data-opens=do-pause]")
    page.fill("#do-pause [name=reason]", "half a rea")
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.clock.run_for(30_000)
    assert asked_for == []
    assert page.input_value("#do-pause [name=reason]") == "half a rea"
    page.fill("#do-pause [name=reason]", "")
    page.click("#do-pause .closes")
    with page.expect_request("**/console/schedule?*"):
        page.clock.run_for(6_000)


def test_a_hidden_tab_asks_for_nothing(tab: Tab) -> None:
    page = tab.page
    page.clock.install()
    tab.open("/")
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})"
    )
    page.clock.run_for(30_000)
    assert asked_for == []
    page.evaluate("delete document.hidden")
    with page.expect_request(lambda request: "fired=" in request.url):
        page.clock.run_for(6_000)


def test_keys_lead_everywhere(tab: Tab) -> None:
    tab.open("/console/schedules?tenant=demo")
    tab.page.keyboard.press("/")
    assert tab.page.evaluate("document.activeElement.id") == "search"
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("t")
    tab.page.wait_for_selector("h1:has-text('Timeline of demo')")
    tab.page.keyboard.press("?")
    tab.page.wait_for_selector("#help[open]")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_view_is_free_of_findings_and_fits_phones_and_walls(
    browser: Browser, worker: Worker, theme: str
) -> None:
    tab = Tab(browser, worker, KEY, color_scheme=theme)
    for path in VIEWS:
        tab.page.set_viewport_size({"width": 1280, "height": 800})
        tab.open(path)
        assert not findings(tab), path
        for width in (375, 2560):
            tab.page.set_viewport_size({"width": width, "height": 800})
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, path
    tab.context.close()
    assert not tab.complaints


def test_a_viewer_sees_no_action_on_a_phone(browser: Browser, worker: Worker) -> None:
    tab = Tab(browser, worker, VIEWER, viewport={"width": 360, "height": 700})
    for path in VIEWS:
        tab.open(path)
        assert tab.page.locator("form[method=post]").count() == 0, path
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360, path
    tab.context.close()
    assert not tab.complaints


def test_a_cancelled_schedule_leaves_the_list_and_keeps_its_history(tab: Tab) -> None:
    tab.open("/console/schedule?tenant=demo&id=daily")
    confirm(tab.page, "cancel")
    tab.page.wait_for_selector("h1:has-text('Schedules of demo')")
    assert "daily" not in tab.page.inner_text("main table, main .empty")
    # The history is a second or so behind.
    tab.page.wait_for_timeout(3000)
    tab.open("/console/schedule?tenant=demo&id=daily")
    assert "CANCELLED" in tab.page.inner_text(".events")
