"""What a release publishes says where it is from, and its links lead somewhere on any page."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from belfry import __version__
from deploy.release.build import PROJECTS, absolute, addressed, main, provenance
from tests.architecture.tree import ROOT

URL = "https://forge.example/owner/belfry"
TARGET = re.compile(r"\]\(([^)\s]+)")


@pytest.mark.parametrize("project", PROJECTS)
def test_links_on_an_index_are_absolute(project: str) -> None:
    page = (ROOT / project / "README.md").read_text("utf-8")
    told = TARGET.findall(absolute(page, URL, "1.2.3"))
    assert len(told) == len(TARGET.findall(page))
    assert [each for each in told if not each.startswith(("https://", "#"))] == []
    for each in told:
        if each.startswith(URL):
            path = each.removeprefix(f"{URL}/blob/v1.2.3/").partition("#")[0]
            assert (ROOT / path).exists(), each


def test_what_is_absolute_or_on_the_page_stays() -> None:
    page = "[a](https://a.example/b) [c](#d) ![e](docs/e.png) [f](docs/f.md#g)"
    there = f"{URL}/blob/v1/docs"
    told = f"[a](https://a.example/b) [c](#d) ![e]({there}/e.png) [f]({there}/f.md#g)"
    assert absolute(page, URL, "1") == told


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_gets_addresses(project: str) -> None:
    text = (ROOT / project / "pyproject.toml").read_text("utf-8")
    urls = tomllib.loads(addressed(text, URL, __version__))["project"]["urls"]
    assert urls["Source"] == URL
    assert set(urls) >= {"Documentation", "Changelog", "Issues"}


def test_provenance_names_the_bytes_the_commit_and_the_locks(tmp_path: Path) -> None:
    wheel = tmp_path / "belfry-1.whl"
    wheel.write_bytes(b"wheel")
    told = provenance([wheel], "c0ffee", URL)
    (subject,) = told["subject"]
    assert subject["name"] == "belfry-1.whl"
    assert subject["digest"]["sha256"] == hashlib.sha256(b"wheel").hexdigest()
    made_of = told["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert made_of[0]["digest"] == {"gitCommit": "c0ffee"}
    assert {"locks/product.lock", "requirements.lock"} <= {each["name"] for each in made_of[1:]}


def test_all_that_is_published_has_one_version() -> None:
    clients = ROOT / "clients"
    pom = (clients / "java" / "pom.xml").read_text("utf-8")
    assert re.findall(r"<version>([^<]+)", pom)[0] == __version__
    for name in ("package.json", "package-lock.json"):
        told = json.loads((clients / "typescript" / name).read_text("utf-8"))
        assert told["version"] == __version__
    page = (ROOT / "docs" / "releasing.md").read_text("utf-8")
    assert f"git tag v{__version__}" in page


@pytest.mark.parametrize("url", ["http://forge.example/owner/belfry", "forge.example", "https://x"])
def test_what_is_no_address_of_a_repository_is_refused(url: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(f"URL={url}")):
        main(url)
