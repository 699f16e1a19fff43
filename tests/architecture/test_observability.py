"""Dashboards and alerts ask for metrics that exist, with labels that these have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from belfry.telemetry.families import FAMILIES
from dashboards.__main__ import MADE
from tests.acceptance.test_live_queries import SILENT
from tests.architecture.tree import ROOT, python_files

FILES: Final = sorted(
    path for path in (ROOT / "dashboards").iterdir() if path.suffix in (".json", ".yml", ".yaml")
)
HISTOGRAM: Final = ("_bucket", "_sum", "_count")
RUNBOOKS: Final = ROOT / "docs" / "runbooks"
ALERTS: Final = re.findall(
    r"- alert: (\w+)", (ROOT / "dashboards" / "alerts.yml").read_text(encoding="utf-8")
)
PARTS: Final = ("## What it means", "## What to look at", "## What to do")
NAME: Final = re.compile(r"\bbelfry_[a-z_]+")
SELECTOR: Final = re.compile(r"\b(belfry_[a-z_]+)\{([^}]*)\}")
LABEL: Final = re.compile(r"([a-z_]+)\s*[=!]~?")
BY: Final = re.compile(r"\b(?:by|without) \(([^)]*)\)")
CHOSEN: Final = re.compile(r'\b(belfry_tenant_[a-z_]+)\{tenant=~"\$tenant"\}')
# The version of dashboards' JSON that Grafana 12 writes.
GRAFANA_12: Final = 42
# Labels that Prometheus adds to every series, and the one of histogram buckets.
TARGET_LABELS: Final = frozenset({"instance", "job", "le"})

LABELS: Final = {
    family.name + suffix: frozenset(family.labels)
    for family in FAMILIES
    for suffix in (("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",))
}


def test_there_are_dashboards_and_alerts() -> None:
    assert {path.suffix for path in FILES} >= {".json", ".yml"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_metric_exists(path: Path) -> None:
    asked = set(NAME.findall(path.read_text(encoding="utf-8")))
    assert asked
    assert asked <= set(LABELS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_label_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace('\\"', '"')
    for name, selector in SELECTOR.findall(text):
        assert set(LABEL.findall(selector)) <= LABELS[name] | TARGET_LABELS
    every = frozenset[str]().union(*LABELS.values()) | TARGET_LABELS
    for labels in BY.findall(text):
        assert {label.strip() for label in labels.split(",")} <= every


@pytest.mark.parametrize("path", [p for p in FILES if p.suffix == ".json"], ids=lambda p: p.name)
def test_a_dashboard_has_titles_and_units(path: Path) -> None:
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    assert dashboard["title"]
    for panel in dashboard["panels"]:
        assert panel["title"]
        if panel["type"] == "row":
            continue
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["description"]


def test_dashboards_are_what_the_sdk_makes_of_their_code() -> None:
    assert set(MADE) == {path.name for path in FILES if path.suffix == ".json"}
    for name, make in MADE.items():
        made = (ROOT / "dashboards" / name).read_text(encoding="utf-8")
        assert made == make(), f"{name}: run make docs"


def test_dashboards_are_of_grafana_12() -> None:
    boards = [json.loads(make()) for make in MADE.values()]
    assert {board["schemaVersion"] for board in boards} == {GRAFANA_12}
    assert len({board["uid"] for board in boards}) == len(boards)


def test_a_tenants_dashboard_asks_for_the_tenants_that_are_chosen() -> None:
    board = json.loads(MADE["tenants.json"]())
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert asked
    names = [name for expression in asked for name in NAME.findall(expression)]
    chosen = [name for expression in asked for name in CHOSEN.findall(expression)]
    assert chosen == names


def test_every_metric_of_the_contract_is_shown() -> None:
    shown = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    assert not [family.name for family in FAMILIES if family.name not in shown]


def test_each_metric_has_a_test_that_fails_where_it_is_gone() -> None:
    """A panel's query, which a real Prometheus has to answer, or a test that reads it by name."""
    boards = [json.loads(make()) for make in MADE.values()]
    panels = (panel for board in boards for panel in board["panels"])
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    read = [
        (ROOT / path).read_text(encoding="utf-8")
        for path in python_files("tests/unit", "tests/integration", "tests/acceptance")
        if path.name != "test_live_queries.py"
    ]
    shown = NAME.findall("\n".join([*(e for e in asked if not silent(e)), *read]))
    names = {name.removesuffix(part) for name in shown for part in ("", *HISTOGRAM)}
    assert [family.name for family in FAMILIES if family.name not in names] == []


def silent(expression: str) -> bool:
    """Whether nothing has to be told of what a query asks for."""
    return any(name in expression for name in SILENT)


def test_each_alert_has_a_runbook_and_names_it() -> None:
    rules = yaml.safe_load((ROOT / "dashboards" / "alerts.yml").read_text(encoding="utf-8"))
    named = {
        rule["alert"]: rule["annotations"].get("runbook")
        for group in rules["groups"]
        for rule in group["rules"]
    }
    assert named == {alert: f"docs/runbooks/{alert}.md" for alert in ALERTS}
    pages = {path.stem for path in RUNBOOKS.iterdir()} - {"README"}
    assert pages == set(ALERTS)
    index = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w+)\.md\)", index)) == pages


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_says_what_exists(alert: str) -> None:
    text = (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")
    places = [text.index(part) for part in PARTS]
    assert places == sorted(places)
    asked = set(re.findall(r"\bbelfry_[a-z_]+", text))
    assert asked <= set(LABELS) | {family.name for family in FAMILIES}
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert not [name for name in re.findall(r"BELFRY_[A-Z_]+", text) if f"`{name}`" not in settings]
    commands = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    used = re.findall(r"`(belfry(?: [a-z-]+)+)", text)
    assert not [command for command in used if command not in commands]
