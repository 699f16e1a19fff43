"""The reference page says what the commands say."""

from __future__ import annotations

from pathlib import Path

from belfry.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_reference_page_is_fresh() -> None:
    again = "run: python -m belfry.cli.reference > docs/cli.md"
    assert PAGE.read_text("utf-8") == reference(), again


def test_every_command_is_in_it() -> None:
    commands = [line[3:] for line in reference().splitlines() if line.startswith("## belfry ")]
    assert commands == sorted(set(commands), key=commands.index)
    assert {"belfry dev", "belfry schedule create", "belfry events tail"} <= set(commands)
