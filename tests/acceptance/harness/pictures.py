"""Makes the pictures of docs/console.md: the console before a made-up belfry, in Chromium.

    make screenshots

The instant, the zone and all answers are fixed (`pictured.py`), so a picture changes only where the
console does.  It needs no Kafka and takes seconds.
"""

from __future__ import annotations

import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, sync_playwright
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from belfry.console import ASSETS
from belfry.console.routes import console_routes
from tests.acceptance.harness.pictured import NOW_MS, pictured_api
from tests.acceptance.harness.small_png import small

THEMES: Final = ("light", "dark")
PICTURES: Final = {
    "overview": "/?fired=1325000&at=1792489275000",
    "timeline": "/console/timeline?tenant=billing",
    "schedules": "/console/schedules?tenant=billing",
    "schedule": "/console/schedule?tenant=billing&id=dunning%2Fdaily",
    "tenants": "/console/tenants?tenant=billing",
    "deliveries": "/console/deliveries?tenant=billing",
}
SIZE: Final = (1280, 760)


@contextmanager
def served_console(api: ASGIApp, *, is_open: bool = True) -> Iterator[str]:
    """The address of a console on top of an API; `is_open` says that nobody has to show a key."""
    app = FastAPI()
    app.include_router(console_routes(api, is_open=is_open))
    app.mount("/console", StaticFiles(directory=ASSETS))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = threading.Thread(target=server.run, args=([listening],), daemon=True)
        serving.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        serving.join()


@contextmanager
def pictured_console() -> Iterator[str]:
    """The address of a console before the made-up belfry, whose clock stands."""
    with ExitStack() as stands, served_console(pictured_api()) as address:
        for view in ("overview", "timeline", "one_schedule"):
            stands.enter_context(patch(f"belfry.console.{view}.time", lambda: NOW_MS / 1000))
        yield address


def picture(browser: Browser, address: str, to: Path, theme: str, size: tuple[int, int]) -> None:
    """One view as a PNG."""
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page.goto(address)
    page.wait_for_selector("#main h1")
    page.wait_for_load_state("networkidle")
    to.write_bytes(small(page.screenshot(animations="disabled", full_page=True)))
    page.close()


def main(folder: str, *only: str) -> int:
    """Make all pictures, or those that are named."""
    with pictured_console() as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-lcd-text"]
        )
        for name, path in PICTURES.items():
            for theme in THEMES:
                if not only or name in only:
                    to = Path(folder) / f"console-{name}-{theme}.png"
                    picture(browser, base + path, to, theme, SIZE)
                    print(to, to.stat().st_size)  # noqa: T201
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
