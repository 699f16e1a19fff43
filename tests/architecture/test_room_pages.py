"""Each room has a page on which a stranger finds the way, and its table of files is current.

That every link of a page leads somewhere is tested with all other pages (`test_pages.py`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.room_pages import (
    BY_HAND,
    first_sentence,
    holds_code,
    page,
    renewed,
    table,
)
from tests.architecture.tree import ROOT, python_files, rooms

MADE: Final = [room for room in rooms() if room not in BY_HAND]
SECTIONS: Final = (
    "Its objects and who calls them",
    "Invariants",
    "Where a change belongs",
    "Files",
)
CODE_NAME: Final = re.compile(r"`([\w/]+(?:\.py|/))`")
LEAST_WORDS: Final = 150


def text_of(room: str) -> str:
    return page(room).read_text(encoding="utf-8")


def prose_of(room: str) -> str:
    """A page without its table of files."""
    return text_of(room).partition("\n## Files\n")[0]


@pytest.mark.parametrize("room", rooms())
def test_every_room_has_a_page(room: str) -> None:
    assert page(room).is_file(), f"app/belfry/{room}/README.md: say what the room is for."


@pytest.mark.parametrize("room", MADE)
def test_the_table_of_files_is_current(room: str) -> None:
    text = text_of(room)
    assert f"<!-- generated: files -->\n\n{table(room)}\n<!-- end -->" in text, "Run `make docs`."
    assert renewed(room, text) == text


@pytest.mark.parametrize("room", BY_HAND)
def test_a_table_that_is_written_by_hand_names_every_file(room: str) -> None:
    text = text_of(room)
    folder = Path("app/belfry") / room
    names = [
        str(path.relative_to(folder))
        for path in python_files(str(folder))
        if path.name != "__init__.py" or (path.parent == folder and holds_code(path))
    ]
    missing = [name for name in names if f"`{name}`" not in text]
    assert not missing, f"{room}/README.md: say what {missing} do."


@pytest.mark.parametrize("room", MADE)
def test_a_page_says_what_a_stranger_asks(room: str) -> None:
    text = text_of(room)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)
    assert len(prose_of(room).split()) >= LEAST_WORDS


@pytest.mark.parametrize("room", MADE)
def test_files_that_a_page_speaks_of_exist(room: str) -> None:
    # A name is that of a file of the room, of another room, or of the whole tree.
    places = (page(room).parent, page(room).parent.parent, ROOT)
    gone = [
        name
        for name in CODE_NAME.findall(prose_of(room))
        if not any((place / name).exists() for place in places)
    ]
    assert not gone, f"{room}/README.md speaks of {gone}, which are not there."


@pytest.mark.parametrize("room", rooms())
def test_the_map_leads_to_the_page(room: str) -> None:
    assert f"(app/belfry/{room}/README.md)" in (ROOT / "ARCHITECTURE.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("What it does.  And why.", "What it does"),
        ("What it does,\nover two lines.\n\nAnd why.", "What it does,\nover two lines"),
        ("``belfry a|b``: one command.", "`belfry a\\|b`: one command"),
        ("Up to 1.5 s, e.g. less.  More.", "Up to 1.5 s, e.g. less"),
        ("Whether it answers?  It says so.", "Whether it answers?"),
    ],
)
def test_the_first_sentence_is_found(docstring: str, sentence: str) -> None:
    assert first_sentence(docstring) == " ".join(sentence.split())
