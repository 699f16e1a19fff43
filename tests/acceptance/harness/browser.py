"""A tab of the console in a real browser, and the API beside it as its operator asks it."""

from __future__ import annotations

from typing import Any, Final

from playwright.sync_api import Browser, Page

from belfry.api.auth.keys import new_key
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, wait_for
from tests.acceptance.harness.worker import Worker
from tests.architecture.tree import ROOT

KEY: Final = new_key()
VIEWER: Final = new_key()
AXE: Final = (ROOT / "tests" / "acceptance" / "vendor" / "axe.min.js").read_text("utf-8")
# Every view, of the tenant that the tests use.
VIEWS: Final = (
    "/",
    "/console/schedules?tenant=demo",
    "/console/schedule?tenant=demo&id=daily",
    "/console/timeline?tenant=demo&by=day",
    "/console/create?tenant=demo",
    "/console/tenants?tenant=demo",
    "/console/policy?tenant=demo",
    "/console/cluster",
    "/console/versions?tenant=demo&id=daily",
    "/console/timeline?by=minute",
    "/console/rejections?tenant=demo",
    "/console/deliveries?tenant=demo",
    "/console/edit?tenant=demo&id=daily",
    "/console/bulk?tenant=demo",
    "/console/redrive?tenant=demo",
    "/console/calendars?tenant=demo&calendar=de",
)


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

    def break_and_close_host(self, host: str, by: str, why: str) -> None:
        """Break a host of webhooks on the page of deliveries, see it listed, and close it."""
        page, listed = self.page, "section:has(#hosts-title) tbody"
        self.open("/console/deliveries?tenant=demo")
        page.click("summary:has-text('Break another host')")
        page.fill("details [name=host]", host.upper())
        page.fill("details [name=reason]", why)
        page.click("details .confirm")
        page.wait_for_selector(f".state.good:has-text('{host.upper()} is broken')")
        row = page.inner_text(f"{listed} tr:has-text('{host}')")
        assert f"broken by {by}" in row
        assert why in row
        assert not findings(self)
        page.click(f"button[aria-label='Close {host}']")
        page.fill("dialog[open] [name=reason]", "moved")
        page.click("dialog[open] .confirm")
        page.wait_for_selector(f".state.good:has-text('{host} is closed')")
        assert page.locator(f"{listed} tr:has-text('{host}')").count() == 0


def shown_at_last(tab: Tab, path: str, where: str, text: str) -> None:
    """Open a page until it shows a text: histories are a second or so behind."""

    def shown() -> bool:
        tab.open(path)
        return any(text in each for each in tab.page.locator(where).all_inner_texts())

    wait_for(text, shown)


def asked(worker: Worker, method: str, path: str, body: Any = None) -> Any:
    """The API's answer to the operator, who tries again where told to; `body` is JSON."""
    ask = Http(worker, patience_s=20)
    status, told, _ = ask(method, f"/v1/tenants/{path}", body, authorization=f"Bearer {KEY}")
    assert status < 300, told
    return told


def findings(tab: Tab) -> list[tuple[str, str]]:
    """What axe-core finds on the page: its rules, and an element each."""
    # The page's own policy lets nothing foreign in; what is evaluated here is the driver's.
    tab.page.evaluate(AXE)
    found = tab.page.evaluate("axe.run().then(told => told.violations)")
    return [(each["id"], each["nodes"][0]["html"]) for each in found]


def confirm(page: Page, action: str) -> None:
    page.click(f"[data-opens=do-{action}]")
    page.fill(f"#do-{action} [name=reason]", "a test")
    page.click(f"#do-{action} .confirm")


def by_schedule(site: Site, schedule_id: bytes) -> list[Record]:
    fired = site.fired("demo")
    return [each for each in fired if each.header("belfry-schedule-id") == schedule_id]


def deliveries(site: Site) -> list[Record]:
    found = site.read(site.topic("deliveries"))
    return [each for each in found if b"posted" in (each.value or b"")]
