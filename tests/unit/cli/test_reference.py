"""The reference page says what the commands say."""

from __future__ import annotations

import re
from pathlib import Path

from belfry.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_reference_page_is_fresh() -> None:
    again = "run: python -m belfry.cli.reference > docs/cli.md"
    assert PAGE.read_text("utf-8") == reference(), again


def test_values_of_options_are_named_for_people() -> None:
    page = reference()
    assert not re.findall(r"<(?:int|float|str|path|list)\b[^>|]*>", page)
    # Bounds are told as errors tell them.
    assert not re.findall(r"[0-9]<=x|\bx[<>]=", page)
    assert page.count("[default: 8700; 0 to 65535]") == 2
    # A default stands once.
    assert not re.findall(r"\[default: [^\]]*\[default: ", page)


def test_every_command_is_in_it() -> None:
    commands = [line[3:] for line in reference().splitlines() if line.startswith("## belfry ")]
    assert commands == sorted(set(commands), key=commands.index)
    assert {"belfry dev", "belfry schedule create", "belfry events tail"} <= set(commands)
