"""Each rule of docs/schedules.md has a timeline: when something fires is seen sooner than read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")
SECTIONS: Final = dict(re.findall(r"^##+ (.+)\n((?:(?!^##+ ).*\n)*)", PAGE, re.MULTILINE))
# These say no rule of when something fires.
OTHERS: Final = frozenset(
    {
        "Look before you ask",
        "Days from a file or a library",
        "What fired lately",
        "One request, one id",
        "Carry schedules elsewhere",
    }
)


def has_timeline(section: str) -> bool:
    """Whether it draws what fires, as a block of text with a mark of a fire."""
    return any("●" in block for block in re.findall(r"```text\n(.*?)```", section, re.DOTALL))


def test_the_page_is_read() -> None:
    assert len(SECTIONS) > 20
    assert SECTIONS.keys() >= OTHERS


@pytest.mark.parametrize("name", sorted(SECTIONS.keys() - OTHERS))
def test_a_rule_has_a_timeline(name: str) -> None:
    assert has_timeline(SECTIONS[name])
