"""Pages tell the truth: links resolve, generated pages are fresh, the README's commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from belfry.telemetry.reference import PAGES
from tests.architecture.tree import ROOT, markdown

LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
GROUPS: Final = frozenset(
    {"topics", "schema", "schedule", "tenant", "events", "deliveries", "bench", "audit", "api-key"}
)


def slug(heading: str) -> str:
    """Anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {slug(heading) for heading in HEADING.findall(FENCE.sub("", page.read_text("utf-8")))}


@pytest.mark.parametrize("page", markdown(), ids=str)
def test_links_resolve(page: Path) -> None:
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = ROOT / page.parent / name if name else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page} links to {link}"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_pages_are_fresh(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "Run `make docs`."


def commands(program: str) -> Iterator[list[str]]:
    """Lines of the README's code blocks that call a program, as words."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in FENCE.findall(readme):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ ").strip(), comments=True)
            if words and Path(words[0]).name == program:
                yield words[1:]


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    asked = {word for words in commands("make") for word in words if "=" not in word}
    assert {"run", "test"} <= asked <= targets


def _help(words: tuple[str, ...]) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", "from belfry.cli.entry import main; main()", *words, "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "COLUMNS": "250", "TERM": "dumb", "NO_COLOR": "1"},
    )
    assert answer.returncode == 0, f"belfry {' '.join(words)}: {answer.stderr}"
    return answer.stdout


def test_commands_of_the_readme_exist() -> None:
    asked: dict[tuple[str, ...], set[str]] = {}
    for words in commands("belfry"):
        command = tuple(words[: 2 if words[0] in GROUPS else 1])
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        asked.setdefault(command, set()).update(options)
    assert asked
    for command, options in asked.items():
        known = set(re.findall(r"--[a-z][a-z-]*", _help(command) + _help(())))
        assert options <= known, command
