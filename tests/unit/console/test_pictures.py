"""The pictures of docs/console.md: their made-up belfry answers all that the console asks."""

from __future__ import annotations

import re
import struct
import zlib

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from belfry.console.routes import console_routes
from tests.acceptance.harness.pictured import pictured_api
from tests.acceptance.harness.pictures import PICTURES, THEMES
from tests.acceptance.harness.small_png import SIGNATURE, _chunk, _chunks, small
from tests.architecture.tree import ROOT

WIDTH, HEIGHT = 3, 5


@pytest.mark.parametrize("path", PICTURES.values(), ids=PICTURES)
def test_every_view_of_a_picture_is_shown(path: str) -> None:
    app = FastAPI()
    app.include_router(console_routes(pictured_api(), is_open=True))
    page = TestClient(app, "http://127.0.0.1:8700").get(path)
    assert page.status_code == 200
    assert "That did not work" not in page.text


def test_the_page_shows_pictures_that_are_there_in_both_themes() -> None:
    shown = set(re.findall(r"pictures/([\w-]+\.png)", (ROOT / "docs" / "console.md").read_text()))
    kept = {each.name for each in (ROOT / "docs" / "pictures").iterdir()}
    made = {f"console-{name}-{theme}.png" for name in PICTURES for theme in THEMES}
    assert shown == kept == made


@pytest.mark.parametrize("kind", range(5))
def test_a_small_png_shows_the_same_pixels_whatever_filter_it_was_written_with(kind: int) -> None:
    line = bytes(range(0, 9 * 20, 20))
    raw = b"".join(bytes([kind]) + line for _ in range(HEIGHT))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    found = dict(_chunks(small(SIGNATURE + b"".join(_chunk(*each) for each in parts))))
    rows, palette = zlib.decompress(found[b"IDAT"]), found[b"PLTE"]
    pixels = [palette[3 * n : 3 * n + 3] for n in rows[1 : 1 + WIDTH]]
    # The first row: nothing is above it, so only what is left of a pixel counts.
    left = [0, 0, 0]
    for n, pixel in enumerate(pixels):
        add = [left, [0, 0, 0], [each // 2 for each in left], left]
        before = [[0, 0, 0], *add][kind]
        left = [(line[3 * n + c] + before[c]) & 255 for c in range(3)]
        if kind in (0, 2):
            left = list(line[3 * n : 3 * n + 3])
        assert list(pixel) == left
