"""The glossary is in order, each term has one sentence or two, and is at home where it says."""

from __future__ import annotations

import re
from typing import Final

from tests.architecture.tree import ROOT

PAGE: Final = ROOT / "docs" / "glossary.md"
ROW: Final = re.compile(r"^\| ([a-z][a-z -]+) \| ([^|]+) \| \[[^]]+\]\(([^)]+)\) \|$", re.MULTILINE)
LONGEST: Final = 170


def rows() -> list[tuple[str, str, str]]:
    """Term, meaning and link of each row."""
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_terms_are_in_order_and_told_once() -> None:
    terms = [term for term, _, _ in rows()]
    assert len(terms) > 50
    assert terms == sorted(set(terms))
    lines = PAGE.read_text(encoding="utf-8").count("\n| ")
    assert lines == len(terms) + 1, "a row has another form"


def test_a_meaning_is_short_and_a_sentence() -> None:
    wrong = [term for term, told, _ in rows() if not told.endswith(".") or len(told) > LONGEST]
    assert not wrong


def test_each_term_is_used_where_it_is_at_home() -> None:
    lost = []
    for term, _, link in rows():
        text = (PAGE.parent / link).resolve().read_text(encoding="utf-8").lower()
        if not re.search(term[:-1].replace(" ", r"[\s_-]+"), text):
            lost.append((term, link))
    assert not lost
