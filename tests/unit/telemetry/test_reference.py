"""Reference pages: every setting and every metric has its row."""

from __future__ import annotations

from pathlib import Path

from belfry.settings import ClusterSettings, Settings
from belfry.telemetry.metrics import FAMILIES
from belfry.telemetry.reference import PAGES, metrics_page, settings_page, write_pages


def test_every_setting_has_a_row() -> None:
    page = settings_page()
    for name in Settings.model_fields:
        assert name == "cluster" or f"| `BELFRY_{name.upper()}" in page
    for name in ClusterSettings.model_fields:
        assert f"| `BELFRY_CLUSTER__{name.upper()}` |" in page


def test_a_row_tells_default_and_bounds() -> None:
    page = settings_page()
    assert "| `BELFRY_HTTP_PORT` | `8700` | 0 to 65\u202f535 |" in page
    assert "| `BELFRY_CREATE_TOPICS` | `true` | true, false |" in page
    assert "| `BELFRY_SCHEMA_REGISTRY_URL` | none | text |" in page
    assert "`debug`, `info`, `warning`, `error`" in page


def test_every_metric_has_a_row() -> None:
    page = metrics_page()
    for family in FAMILIES:
        assert f"| `{family.name}` | {family.kind} |" in page


def test_pages_are_written(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)
