"""The sites of several releases lie beside each other, and the newest is the one that is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.site.versions import add
from tests.architecture.tree import ROOT


def site(folder: Path, text: str) -> Path:
    """A site of one page."""
    folder.mkdir()
    (folder / "index.html").write_text(text)
    return folder


def test_the_newest_release_is_first_and_led_to(tmp_path: Path) -> None:
    versions = tmp_path / "versions"
    for release in ("0.9.0", "0.10.0", "0.2.0"):
        add(site(tmp_path / release, release), versions, release)
    listed = json.loads((versions / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0", "0.2.0"]
    assert 'url=0.10.0/"' in (versions / "index.html").read_text()
    assert (versions / "0.9.0" / "index.html").read_text() == "0.9.0"


def test_a_release_that_is_built_anew_takes_its_place(tmp_path: Path) -> None:
    versions = tmp_path / "versions"
    (old := site(tmp_path / "old", "old")).joinpath("gone.html").write_text("gone")
    add(old, versions, "0.1.0")
    assert add(site(tmp_path / "new", "new"), versions, "0.1.0") == ["0.1.0"]
    assert [each.name for each in (versions / "0.1.0").iterdir()] == ["index.html"]


@pytest.mark.parametrize("release", ["", "latest", "../0.1", "0.1-rc1"])
def test_what_is_no_release_is_refused(release: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no release"):
        add(tmp_path, tmp_path / "versions", release)


def test_the_theme_looks_for_versions() -> None:
    assert "provider: mike" in (ROOT / "mkdocs.yml").read_text("utf-8")
