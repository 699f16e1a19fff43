"""Documents say what the code does: tables and codes that stand in both are the same in both."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from belfry.engine import ownership
from belfry.schedules import transitions
from belfry.schedules.rejections import CODES, PASSING
from tests.architecture.tree import ROOT, rooms

CODE_HEADING: Final = re.compile(r"^### `([a-z_]+)`$", re.MULTILINE)
JOB_CODE: Final = re.compile(r'Outcome\.REJECTED,[^)]*\bcode="([a-z_]+)"')
REFUSED: Final = re.compile(r'\bRejection\(\s*(?:"([a-z_]+)"|([A-Z_]+)\b)')
PROMISE: Final = re.compile(r"^## [1-5]\. .+$", re.MULTILINE)


def read(path: str) -> str:
    """A page of the project."""
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("belfry.engine.ownership.diagram()", lambda: f"```mermaid\n{ownership.diagram()}\n```"),
        ("belfry.schedules.transitions.table()", transitions.table),
    ],
)
def test_generated_parts_of_the_engines_page_are_fresh(name: str, make: Callable[[], str]) -> None:
    text, made = read("app/belfry/engine/README.md"), make()
    assert f"<!-- generated: {name} -->\n\n{made}\n\n" in text, f"Put this there:\n{made}"


def test_every_rejection_is_explained_once() -> None:
    assert sorted(CODE_HEADING.findall(read("docs/rejections.md"))) == sorted(CODES)


def test_every_rejection_that_the_code_makes_is_one_of_them() -> None:
    found: set[str] = set()
    for path in (ROOT / "app/belfry").rglob("*.py"):
        text = path.read_text("utf-8")
        for code, constant in REFUSED.findall(text):
            named = re.findall(rf'^{constant}: Final = "([a-z_]+)"$', text, re.MULTILINE)
            found.update([code] if code else named)
    assert {"bad_move", "no_tenant"} <= found
    assert found <= CODES.keys()


def test_the_refusals_that_are_not_remembered_are_listed() -> None:
    _, _, behind = read("docs/rejections.md").partition("so the repeat is judged again:")
    listed, _, _ = behind.partition("\n## ")
    assert sorted(re.findall(r"`([a-z_]+)`", listed)) == sorted(PASSING)


def test_the_refusals_of_jobs_are_listed() -> None:
    # Written out in the engine, each in its reply: what is neither code nor explained is found.
    engine = (ROOT / "app/belfry/engine").glob("b*.py")
    told = {code for path in engine for code in JOB_CODE.findall(path.read_text("utf-8"))}
    _, _, jobs = read("docs/rejections.md").partition("## What a job refuses")
    assert told - CODES.keys() == set(re.findall(r"^\| `([a-z_]+)` \|", jobs, re.MULTILINE))


def test_every_explanation_is_a_sentence_of_its_own() -> None:
    _, *parts = CODE_HEADING.split(read("docs/rejections.md"))
    explanations = [part.partition("\n## ")[0].strip() for part in parts[1::2]]
    assert all(len(each.split()) >= 8 and each.endswith((".", ":")) for each in explanations)
    assert len(set(explanations)) == len(explanations)


def test_the_index_lists_every_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    listed = re.findall(r"\]\(([a-z-]+\.md)\)", read("docs/README.md"))
    assert sorted(listed) == sorted(pages), "docs/README.md is the index: add or remove a line."


def test_the_site_has_every_page() -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    named = set(re.findall(r"^ +- ([a-z/-]+\.md|README\.md)$", read("mkdocs.yml"), re.MULTILINE))
    runbooks = {each for each in pages if each.startswith("runbooks/")}
    assert pages - runbooks - named == set(), "mkdocs.yml: add it to the navigation."


def test_index_and_site_put_each_page_under_the_same_kind() -> None:
    kinds = ("Tutorial", "How to", "Reference", "Explanation")
    nav = re.split(r"^  - ([A-Z][\w ]+):$", read("mkdocs.yml"), flags=re.MULTILINE)
    index = re.split(r"^## (.+)$", read("docs/README.md"), flags=re.MULTILINE)
    of_site = {
        kind: re.findall(r"^ +- ([a-z/-]+(?:README)?\.md)$", text, re.MULTILINE)
        for kind, text in zip(nav[1::2], nav[2::2], strict=True)
    }
    of_index = {
        kind: re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", text, re.MULTILINE)
        for kind, text in zip(index[1::2], index[2::2], strict=True)
    }
    assert tuple(of_site) == kinds == tuple(of_index)[:4]
    for kind in kinds:
        # The site has pages besides that lie elsewhere, or are made for it.
        there = [page for page in of_site[kind] if (ROOT / "docs" / page).is_file()]
        assert of_index[kind] == there, kind


def test_the_readme_names_every_promise() -> None:
    promises = PROMISE.findall(read("docs/guarantees.md"))
    assert len(promises) == 5
    assert len(re.findall(r"\(docs/guarantees\.md#[1-5]-", read("README.md"))) == 5


def test_the_layers_on_the_map_are_those_that_are_enforced() -> None:
    contract = re.search(
        r"^layers = \[\n(.*?)^\]", read("pyproject.toml"), re.MULTILINE | re.DOTALL
    )
    assert contract is not None
    enforced = [re.findall(r"\w+", line) for line in contract[1].splitlines()]
    there = {*rooms(), "assembly", "settings"}
    expected = [[name for name in layer if name in there] for layer in enforced]
    block = re.search(r"```text\n(cli\n.*?)```", read("ARCHITECTURE.md"), re.DOTALL)
    assert block is not None
    drawn = [line.split() for line in block[1].splitlines()]
    assert [sorted(layer) for layer in drawn] == [sorted(layer) for layer in expected if layer]
