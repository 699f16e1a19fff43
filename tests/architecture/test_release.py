"""What a release publishes says where it is from, and its links lead somewhere on any page."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from belfry import __version__
from deploy.release.build import PROJECTS, absolute, addressed, main, provenance
from deploy.release.clients import JARS, addressed_package, addressed_page, addressed_pom
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
    for project, name in JARS.items():
        pom = project_of((clients / project / "pom.xml").read_text("utf-8"))
        assert [pom["artifactId"], pom["version"]] == [name, __version__]
    starter = (clients / "java" / "starter" / "pom.xml").read_text("utf-8")
    java = (clients / "java" / "pom.xml").read_text("utf-8")
    (boot,) = re.findall(r"<spring.boot.version>([^<]+)", java)
    # The starter brings the client of its version, and the Spring that the client is built with.
    asked = re.findall(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)", starter)
    assert dict(asked[1:3]) == {"belfry-client": __version__, "spring-boot-starter-kafka": boot}
    page = (ROOT / "docs" / "first-event.md").read_text("utf-8")
    shown = re.findall(r"<artifactId>(belfry-[^<]+)</artifactId>\s*<version>([^<]+)", page)
    assert dict(shown) == dict.fromkeys(JARS.values(), __version__)
    assert f"belfry-client-{__version__}.tgz" in page
    for name in ("package.json", "package-lock.json"):
        told = json.loads((clients / "typescript" / name).read_text("utf-8"))
        assert told["version"] == __version__
    page = (ROOT / "docs" / "releasing.md").read_text("utf-8")
    assert f"git tag v{__version__}" in page


def project_of(pom: str) -> dict[str, str]:
    """What a project of Maven says of itself, by tag; names below a tag are joined by a slash."""
    found: dict[str, str] = {}

    def walk(node: Element, path: str) -> None:
        for each in node:
            name = f"{path}{each.tag}"
            found.setdefault(name, (each.text or "").strip())
            walk(each, f"{name}/")

    walk(fromstring(pom), "")
    return found


@pytest.mark.parametrize("project", JARS)
def test_a_jar_says_what_its_registry_asks_for(project: str) -> None:
    pom = (ROOT / "clients" / project / "pom.xml").read_text("utf-8")
    told = project_of(addressed_pom(pom, URL))
    for name in ("name", "description", "licenses/license/url", "developers/developer/name"):
        assert told[name], name
    assert [told["url"], told["scm/url"]] == [URL, URL]
    assert told["scm/connection"] == f"scm:git:{URL}.git"


def test_a_package_of_npm_says_where_it_is_from() -> None:
    path = ROOT / "clients" / "typescript" / "package.json"
    plain = json.loads(path.read_text("utf-8"))
    told = json.loads(addressed_package(path.read_text("utf-8"), URL))
    assert told["repository"]["url"] == f"git+{URL}.git"
    assert {name: each for name, each in told.items() if name in plain} == plain
    links = TARGET.findall(addressed_page((path.parent / "README.md").read_text("utf-8"), URL))
    assert links
    for each in links:
        place = each.removeprefix(f"{URL}/blob/v{__version__}/")
        assert place != each
        assert (ROOT / place).is_file(), each


@pytest.mark.parametrize("url", ["http://forge.example/owner/belfry", "forge.example", "https://x"])
def test_what_is_no_address_of_a_repository_is_refused(url: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(f"URL={url}")):
        main(url)
