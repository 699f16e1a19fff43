"""docs/first-event.md in parts: for each way in, the files to save and the commands to type.

A way in is a section of the page.  The name of a file, in backquotes with a colon, stands right
before the block of what is in it.  Blocks of ``sh`` are typed line by line, ``python`` as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.architecture.tree import ROOT

PAGE: Final = Path("docs/first-event.md")
FILE: Final = re.compile(r"`([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED: Final = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What makes the environment that a test has already.
ACTIVATE: Final = "source .venv/bin/activate"


@dataclass(frozen=True)
class Way:
    """One way to a first event."""

    title: str
    files: dict[Path, str]
    # Language and text.
    typed: list[tuple[str, str]]

    @property
    def needs(self) -> str:
        """The program that it is for."""
        by_title = {"Java": "mvn", "Spring Boot": "mvn", "Go": "go", "TypeScript": "npm"}
        return by_title.get(self.title, self.title.lower())

    @property
    def shows(self) -> str:
        """What is seen once the event has fired."""
        return '"state":"FIRED"' if self.title == "curl" else f"hello from {self.title}"


def ways() -> list[Way]:
    """All of the page, in its order."""
    _, *parts = re.split(r"^## (.+)\n", (ROOT / PAGE).read_text("utf-8"), flags=re.MULTILINE)
    return [_way(*each) for each in zip(parts[::2], parts[1::2], strict=True)]


def _way(title: str, section: str) -> Way:
    typed: list[tuple[str, str]] = []
    for language, block in TYPED.findall(section):
        lines = [block] if language == "python" else block.splitlines()
        typed += [(language, each) for each in lines if each != ACTIVATE]
    files = {Path(name): text for name, text in FILE.findall(section)}
    return Way(title, files, typed)
