"""`make site-check`: a browser looks at the site as a reader does, by way of a plain web server.

    dist/versions/index.html ─► leads to this release
    the selector             ─► offers each release that lies there
    the search               ─► finds the page of each word in `FOUND`
    a page's own scripts     ─► say nothing is wrong, and nothing is fetched from elsewhere

What MkDocs itself can see (links, anchors, pages left out) `make site` has checked.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from playwright.sync_api import Page, sync_playwright

# A word, and a page that has to be among what is found.
FOUND: Final = {
    "debounce": "schedules.html",
    "signed claims": "tenants.html",
    "helm": "how-to/kubernetes.html",
    "bad_cron": "rejections.html",
    "TypeScript": "how-to/typescript.html",
}
FOUND_MS: Final = 15_000


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a line for each."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        """Say nothing."""


class QuietServer(ThreadingHTTPServer):
    """A server that does not mind a browser that goes before it has all."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


def mistakes(page: Page, address: str, release: str, releases: list[str]) -> Iterator[str]:
    """What a reader would miss."""
    elsewhere: list[str] = []
    page.on("request", lambda asked: elsewhere.append(asked.url))
    page.on("pageerror", lambda error: elsewhere.append(str(error)))
    page.goto(address)
    page.wait_for_url(f"{address}/{release}/**")
    selector = page.wait_for_selector(".md-version__list", state="attached")
    offered = selector.query_selector_all("a") if selector else []
    if (told := [each.text_content() for each in offered]) != releases:
        yield f"the selector offers {told}, and there are {releases}"
    for words, wanted in FOUND.items():
        page.goto(f"{address}/{release}/")
        page.wait_for_load_state("networkidle")
        page.keyboard.press("/")
        page.keyboard.type(words)
        try:
            page.wait_for_selector(
                f'.md-search-result__link[href*="/{wanted}"]', state="attached", timeout=FOUND_MS
            )
        except Exception:  # noqa: BLE001  # whatever it is, it was not found
            yield f"the search for {words!r} does not find {wanted}"
    yield from (each for each in elsewhere if not each.startswith((address, "data:", "blob:")))


def main(versions: Path, release: str) -> None:
    """Look at the site of this release; ends with 1 and what is wrong, if anything."""
    listed = json.loads((versions / "versions.json").read_text("utf-8"))
    server = QuietServer(("127.0.0.1", 0), partial(Quiet, directory=str(versions)))
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        releases = [each["version"] for each in listed]
        found = list(mistakes(page, address, release, releases))
        browser.close()
    server.shutdown()
    if not found:
        print(
            f"{versions}/{release}: the selector and {len(FOUND)} searches lead where they should"
        )
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main(Path("dist/versions"), sys.argv[1])
