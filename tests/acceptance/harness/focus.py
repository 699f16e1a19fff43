"""Focus by the keyboard: where Tab leads on a page, in which order, and whether one sees it.

    stops     all links, buttons, fields, summaries and scrolled regions that are seen, in the order
              of the page's text
    walked    so many times Tab: each has to lead to the next stop, and to be seen there
    ordered   each stop lies below the one before, or to the right of it in the same row

What is seen is an outline of two pixels or more that differs from what is behind it by the contrast
of 3 that WCAG 2.2 asks for (1.4.11, 2.4.7), on an element that the window shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from playwright.sync_api import Page

LEAST_PX: Final = 2
LEAST_CONTRAST: Final = 3
STOPS: Final = """() => {
  const all = "a[href], button, input, select, textarea, summary, [tabindex]";
  const isStop = (each) => each.id !== "main" && !each.disabled && each.type !== "hidden"
    && each.checkVisibility({ visibilityProperty: true });
  window.stops = [...document.querySelectorAll(all)].filter(isStop);
  // What is scrolled out of a region lies at its edge.
  const box = (each) => {
    const { left, top, right, bottom } = each.getBoundingClientRect();
    const region = each.parentElement.closest(".scroll")?.getBoundingClientRect();
    if (!region) return [left, top, right, bottom];
    const within = (at, low, high) => Math.min(Math.max(at, low), high);
    return [
      within(left, region.left, region.right), within(top, region.top, region.bottom),
      within(right, region.left, region.right), within(bottom, region.top, region.bottom),
    ];
  };
  return stops.map((each) => ({ name: each.outerHTML.slice(0, 100), box: box(each) }));
}"""
# The next Tab leads to the first stop, and nothing refreshes the page meanwhile.
FROM_THE_START: Final = """() => {
  Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute("tabindex");
}"""
STANDING: Final = """() => {
  const luminance = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
      .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (each) => {
    const color = getComputedStyle(each).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" && each.parentElement ? behind(each.parentElement) : color;
  };
  const at = document.activeElement;
  const style = getComputedStyle(at);
  const shades = [style.outlineColor, behind(at.parentElement ?? at)].map(luminance);
  const [low, high] = shades.sort((a, b) => a - b);
  const { left, top, right, bottom } = at.getBoundingClientRect();
  return {
    number: window.stops.indexOf(at),
    name: at.outerHTML.slice(0, 100),
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    contrast: (high + 0.05) / (low + 0.05),
    isShown: right > 0 && bottom > 0 && left < innerWidth && top < innerHeight,
  };
}"""


@dataclass(frozen=True)
class Stop:
    """An element that Tab has to lead to: the beginning of its HTML, and its box on the page."""

    name: str
    box: tuple[float, float, float, float]

    def is_read_before(self, other: Stop) -> bool:
        """Whether the other one lies neither above it nor to its left in the same row."""
        left, top, _, bottom = self.box
        _, other_top, other_right, other_bottom = other.box
        shared = min(bottom, other_bottom) - max(top, other_top)
        same_row = shared > min(bottom - top, other_bottom - other_top) / 2
        return other_bottom > top and not (same_row and other_right <= left)


def stops(page: Page) -> list[Stop]:
    """What Tab has to lead to, in the order of the page's text."""
    return [Stop(each["name"], tuple(each["box"])) for each in page.evaluate(STOPS)]


def out_of_order(page: Page) -> list[tuple[str, str]]:
    """Neighbours of which the second is read before the first."""
    found = pairwise(stops(page))
    return [(one.name, other.name) for one, other in found if not one.is_read_before(other)]


def walked(page: Page) -> list[str]:
    """What is wrong with the focus on a walk over the page by Tab; nothing, if all is well."""
    page.evaluate(FROM_THE_START)
    wrong = []
    for number, stop in enumerate(stops(page)):
        page.keyboard.press("Tab")
        wrong += _faults(number, stop, page.evaluate(STANDING))
    return wrong


def _faults(number: int, stop: Stop, found: Any) -> list[str]:
    """What is wrong with where Tab led."""
    if found["number"] != number:
        return [f"Tab led to {found['name']}, not to {stop.name}"]
    faults = {
        "has no outline": found["outline"] < LEAST_PX,
        f"has an outline of contrast {found['contrast']:.1f}": found["contrast"] < LEAST_CONTRAST,
        "is out of sight": not found["isShown"],
    }
    return [f"{stop.name} {fault}" for fault, holds in faults.items() if holds]
