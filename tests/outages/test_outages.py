"""The table of outages is about those that are planted, and what is read of them can be read."""

from __future__ import annotations

import re

from tests.architecture.tree import ROOT
from tests.outages.__main__ import table, words
from tests.outages.planted import OUTAGES
from tests.outages.signs import MAIN, Seen, Signs, Told

PAGE = (ROOT / "docs" / "runbooks" / "README.md").read_text("utf-8")


def test_the_page_has_the_ten_outages_with_what_was_measured() -> None:
    _, _, part = PAGE.partition("## Ten outages")
    listed = re.findall(r"^\| \*\*([^*]+)\*\* \|", part, re.MULTILINE)
    assert listed == [each.name for each in OUTAGES]
    assert len(OUTAGES) == 10
    assert "make outages" in part


def test_every_outage_has_an_alert_and_is_found_by_doctor_and_page() -> None:
    assert not [each.name for each in OUTAGES if not (each.signs.alert and each.signs.doctor)]
    alerts = (ROOT / "dashboards" / "alerts.yml").read_text("utf-8")
    assert not [each.name for each in OUTAGES if f"alert: Belfry{each.signs.alert}" not in alerts]


def test_what_was_not_told_is_seen_in_the_table() -> None:
    seen = Seen("away", {"alert": Told(4.2, "BelfryNotReady")}, early=["log"], missing=["page"])
    rows = table([seen]).splitlines()
    assert len(rows) == 3
    assert rows[2] == "| away | 4 s | – | NOTHING | – | – |"
    assert len(rows[0].split("|")) == len(Signs._fields) + 3
    assert "EARLY: ['log']" in words([seen])


def test_the_overview_has_the_part_that_is_looked_at() -> None:
    folder = ROOT / "app" / "belfry" / "console" / "templates"
    page = (folder / "overview.html").read_text("utf-8")
    found = MAIN.search(page)
    assert found is not None, "the page was changed: MAIN finds nothing in it"
    assert "problems" in found[1]
    # Without tenants it goes on to the end of what every page has.
    assert MAIN.search(page.partition("{% if tenants %}")[0] + "</main>")
    assert "</main>" in "".join(each.read_text("utf-8") for each in folder.glob("*.html"))
