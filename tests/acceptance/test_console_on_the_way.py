"""The console for who is on the way: a narrow screen, a far zone, a worker that hangs.

The belfry is made up, so none of it needs Kafka.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.acceptance.harness.pictures import pictured_console

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
PHONE: Final[ViewportSize] = {"width": 360, "height": 700}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with pictured_console() as address:
        yield address


@pytest.fixture
def page(address: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        zone = "America/Argentina/Buenos_Aires"
        yield browser.new_context(base_url=address, viewport=PHONE, timezone_id=zone).new_page()
        browser.close()


def test_a_worker_that_hangs_is_told_of(page: Page) -> None:
    page.goto("/console/cluster")
    # It takes requests, and answers none.
    page.route("**/*", lambda _route: None)
    page.wait_for_selector("#silent:has-text('does not answer')", timeout=60_000)
    assert page.locator("table").count()


def test_phones_show_more_of_a_list_than_long_ids(page: Page) -> None:
    page.goto("/console/schedules?tenant=billing")
    cells = "tbody td:first-child a"
    page.eval_on_selector_all(cells, "all => all.forEach(a => a.textContent = 'order'.repeat(30))")
    box = page.locator("tbody td").nth(1).bounding_box()
    assert box is not None
    assert box["x"] < 300


@pytest.mark.parametrize(
    "path", ["/console/cluster", "/console/schedule?tenant=billing&id=dunning%2Fdaily"]
)
def test_instants_of_a_zone_with_a_long_name_fit_a_phone(page: Page, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("time + .soft:has-text('Buenos_Aires')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
