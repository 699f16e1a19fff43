"""The glossary is in order, each term has one sentence or two, and is at home where it says."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.architecture.tree import ROOT

PAGE: Final = ROOT / "docs" / "glossary.md"
ROW: Final = re.compile(r"^\| ([a-z][a-z -]+) \| ([^|]+) \| \[[^]]+\]\(([^)]+)\) \|$", re.MULTILINE)
LONGEST: Final = 170
# Words that code and pages used before, and what they say now.
OLD: Final = {
    "rightful": "assigned",
    "_hasty": "_backing_off",
    "passport": "internal token",
    "policy_?desk": "policy client",
    r"\bdesk\b": "request client",
    r"(?-i:\bPATIENCE_M?S\b)": "timeout",
    "unended": "open deliveries",
    r"\brosters?\b": "assignment map",
    r"\bSeat\b|\bseats? of\b": "assigned member",
    r"\bposter\b": "sender",
    r"\b(Outlets|outlets)\b": "output topics",
    r"\bstrays?\b": "misrouted request",
    r"(?-i:\b(Ticket|Journal|Book|Patience|Terms|MemberStanding)\b)": "see the glossary",
    r"\bdressed\b": "enveloped",
    r"(?-i:\bInlets?\b)": "tenant input",
    # A field of the schema AuditEvent, whose text stands in releases, keeps it.
    r"\bwhoever\b(?! wrote it\. \|)": "the person or program that does it",
}


def rows() -> list[tuple[str, str, str]]:
    """Term, meaning and link of each row."""
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("word", OLD)
def test_old_words_stay_away(word: str) -> None:
    files = [*(ROOT / "app").rglob("*.py"), *(ROOT / "app").rglob("*.md")]
    files += [*(ROOT / "docs").rglob("*.md"), ROOT / "ARCHITECTURE.md", ROOT / "README.md"]
    said = re.compile(word, re.IGNORECASE)
    found = [path for path in files if said.search(path.read_text(encoding="utf-8"))]
    assert not found, f"say {OLD[word]!r}"


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
