"""The console in a real browser, before a real worker: each view, actions, keys, both themes.

Chromium is Debian's; axe-core looks for what people who see or hear little cannot use.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from belfry.api.auth.keys import digest, new_key
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.worker import Worker
from tests.architecture.tree import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
KEY: Final = new_key()
VIEWER: Final = new_key()
AXE: Final = (ROOT / "tests" / "acceptance" / "vendor" / "axe.min.js").read_text("utf-8")
HOSTILE: Final = "<img src=x onerror=alert(1)>"
VIEWS: Final = (
    "/",
    "/console/schedules?tenant=demo",
    "/console/schedule?tenant=demo&id=daily",
    "/console/timeline?tenant=demo&by=day",
    "/console/create?tenant=demo",
    "/console/tenants?tenant=demo",
    "/console/cluster",
)


@pytest.fixture(scope="module")
def worker(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    keys = [
        {"name": "o", "sha256": digest(KEY), "tenants": ["*"], "role": "operate"},
        {"name": "v", "sha256": digest(VIEWER), "tenants": ["demo"], "role": "read"},
    ]
    with Site(kafka, f"console-{now_ms()}", tmp_path_factory.mktemp("console")) as site:
        yield site.worker(HTTP_API_KEYS=json.dumps(keys)).start().wait_ready()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


class Tab:
    """A tab with a key, and what its console complained of."""

    def __init__(self, browser: Browser, worker: Worker, key: str, **more: Any) -> None:
        base = f"http://127.0.0.1:{worker.http_port}"
        self.context = browser.new_context(base_url=base, bypass_csp=False, **more)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto("/")
        self.page.fill("#key", key)
        self.page.click("#key-form button")
        self.page.wait_for_selector("h1:has-text('Overview')")

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, path: str) -> None:
        self.page.goto(path)
        self.page.wait_for_selector("#main:not([data-locked]) h1")


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


def _confirm(page: Page, action: str) -> None:
    page.click(f"[data-opens=do-{action}]")
    page.fill(f"#do-{action} [name=reason]", "a test")
    page.click(f"#do-{action} .confirm")


def test_actions_are_confirmed_and_show_what_became(tab: Tab) -> None:
    tab.open("/console/schedule?tenant=demo&id=daily")
    _confirm(tab.page, "pause")
    tab.page.wait_for_selector(".state:has-text('PAUSED')")
    _confirm(tab.page, "resume")
    tab.page.wait_for_selector(".state:has-text('PENDING')")
    _confirm(tab.page, "trigger")
    tab.page.wait_for_selector("dialog:not([open])", state="attached")


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
def test_each_view_is_free_of_findings(browser: Browser, worker: Worker, theme: str) -> None:
    tab = Tab(browser, worker, KEY, color_scheme=theme)
    for path in VIEWS:
        tab.open(path)
        # The page's own policy lets nothing foreign in; what is evaluated here is the driver's.
        tab.page.evaluate(AXE)
        found = tab.page.evaluate("axe.run().then(told => told.violations)")
        assert not [(each["id"], each["nodes"][0]["html"]) for each in found], path
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
    _confirm(tab.page, "cancel")
    tab.page.wait_for_selector("h1:has-text('Schedules of demo')")
    assert "daily" not in tab.page.inner_text("main table, main .empty")
    # The history is a second or so behind.
    tab.page.wait_for_timeout(3000)
    tab.open("/console/schedule?tenant=demo&id=daily")
    assert "CANCELLED" in tab.page.inner_text(".events")
