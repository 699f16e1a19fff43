"""The console by the keyboard alone: Tab leads through each view as it is read, and one sees where.

It runs in Chromium before an API that answers with long and hostile values (no Kafka is needed), so
each view has all of its links, buttons, fields and tables.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tests.acceptance.harness.focus import FROM_THE_START, out_of_order, walked
from tests.acceptance.harness.pictures import served_console
from tests.unit.console.conftest import SHOWN, VIEWS, FakeApi

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
PHONE: Final[ViewportSize] = {"width": 375, "height": 800}
WINDOW: Final[ViewportSize] = {"width": 1280, "height": 800}
# What may go wrong with the focus, and what a walk says of it.
FAULTS: Final = {
    "document.querySelector('nav a').tabIndex = -1": "Tab led to",
    "document.querySelector('#search').tabIndex = 1": "Tab led to",
    "document.querySelector('#search').style.outline = 'none'": "has no outline",
    "document.querySelector('#search').style.outlineColor = 'white'": "contrast",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served_console(FakeApi().app, is_open=False) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with browser.new_context(base_url=address, viewport=WINDOW) as context:
        opened = context.new_page()
        opened.goto("/")
        yield opened


def unlock(page: Page) -> None:
    page.fill("#key", "any")
    page.click("#key-form button")
    settle(page)


def settle(page: Page) -> None:
    """A view that has come begins with the focus at its content."""
    page.wait_for_selector("#main:not([data-locked]) h1")
    page.wait_for_function("document.activeElement.id === 'main'")


def show(page: Page, path: str) -> None:
    page.set_viewport_size(WINDOW)
    page.goto(path)
    settle(page)


def test_tab_leads_through_each_view_as_it_is_read_and_shows_where_it_is(page: Page) -> None:
    assert not walked(page)
    unlock(page)
    for path in VIEWS:
        show(page, path)
        assert not walked(page), path
        for size in (PHONE, WINDOW):
            page.set_viewport_size(size)
            assert not out_of_order(page), (path, size)


def test_the_focus_is_seen_in_the_dark_as_well(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    unlock(page)
    show(page, SHOWN)
    assert not walked(page)


def test_the_keyboard_alone_skips_the_menu_and_opens_and_leaves_a_dialog(page: Page) -> None:
    unlock(page)
    show(page, SHOWN)
    page.evaluate(FROM_THE_START)
    for key in ("Tab", "Enter", "Tab"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.textContent") == "Schedules of t"
    page.focus("#open-pause")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('dialog').id") == "do-pause"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "open-pause"


def test_the_walk_sees_what_it_should(page: Page) -> None:
    unlock(page)
    for fault, what in FAULTS.items():
        show(page, "/console/schedules?tenant=t")
        page.evaluate(fault)
        assert what in walked(page)[0], fault


def test_the_order_sees_what_it_should(page: Page) -> None:
    unlock(page)
    show(page, "/console/schedules?tenant=t")
    assert not out_of_order(page)
    page.evaluate("document.querySelector('header nav').style.flexDirection = 'row-reverse'")
    assert out_of_order(page)
    page.evaluate("document.querySelector('header nav').style.flexDirection = 'row'")
    page.evaluate("document.querySelector('main').style.display = 'flex'")
    page.evaluate("document.querySelector('main').style.flexDirection = 'column-reverse'")
    assert out_of_order(page)
