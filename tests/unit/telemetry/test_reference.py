"""Reference pages: every setting and every metric has its row."""

from __future__ import annotations

from pathlib import Path

from belfry.settings import ClusterSettings, CommandSettings, Settings
from belfry.telemetry.families import FAMILIES
from belfry.telemetry.reference import PAGES, metrics_page, settings_page, write_pages


def test_every_setting_has_a_row() -> None:
    page = settings_page()
    for name in Settings.model_fields.keys() | CommandSettings.model_fields.keys():
        assert (
            name == "cluster"
            or page.count(f"| `BELFRY_{name.upper()}`") == 1
            or (page.count(f"| `BELFRY_{name.upper()}__…`") == 1)
        )
    for name in ClusterSettings.model_fields:
        assert f"| `BELFRY_CLUSTER__{name.upper()}` |" in page


def test_a_row_tells_default_and_bounds() -> None:
    page = settings_page()
    assert "| `BELFRY_HTTP_PORT` | `8700` | 0 to 65\u202f535 |" in page
    assert "| `BELFRY_CREATE_TOPICS` | `true` | true, false |" in page
    assert "| `BELFRY_SCHEMA_REGISTRY_URL` | none | text |" in page
    assert "`debug`, `info`, `warning`, `error`" in page


def test_a_row_tells_whether_workers_share_the_setting() -> None:
    rows = {line.split("`")[1]: line for line in settings_page().splitlines() if "| `" in line}
    assert rows["BELFRY_LIFECYCLE"].endswith(
        "| yes, rolling: an outcome is told by one owner, and not by another |"
    )
    assert "| yes, fixed: " in rows["BELFRY_CLUSTER__PARTITIONS"]
    assert "| yes, together: " in rows["BELFRY_HTTP_WORKER_SECRET"]
    assert "| no: " in rows["BELFRY_BATCH_RECORDS"]
    assert rows["BELFRY_HTTP_URL"].endswith("for commands that ask it. |")


def test_every_metric_has_a_row() -> None:
    page = metrics_page()
    for family in FAMILIES:
        assert f"| `{family.name}` | {family.kind} |" in page


def test_pages_are_written(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)
