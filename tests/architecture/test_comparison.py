"""What the comparison with other schedulers points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \|(.*)", PAGE, re.MULTILINE)
DEMANDS = re.findall(r"^\| D(\d+) \|(.*)", PAGE, re.MULTILINE)
COMMANDS = sorted(set(re.findall(r"`belfry ([a-z -]+?)(?= [A-Z0-9]| demo| --|`)([^`]*)`", PAGE)))
# What may be typed: a command, a request, a record, a row of a database, or a test's clock.
TYPED = re.compile(
    r"`([A-Z_]+=\S+ )?((belfry|make|curl|kcat|pip|head|INSERT|GET|POST) |belfry\.testing)"
)
OPTION = re.compile(r"--[a-z-]+")


def test_each_of_the_58_rows_is_there_once_with_a_state() -> None:
    assert sorted(int(number) for number, _ in ROWS) == [*range(1, 59)]
    assert all(row.split("|")[1].strip() in set("●◐○") for _, row in ROWS)


def test_each_of_the_17_demands_is_there_once_with_a_state() -> None:
    assert [number for number, _ in DEMANDS] == [str(number) for number in range(1, 18)]
    assert all(row.split("|")[1].strip() in set("●◐○") for _, row in DEMANDS)


def test_what_is_there_can_be_seen() -> None:
    assert [
        number
        for number, row in [*ROWS, *DEMANDS]
        if "○" not in row and not row.split("|")[2].strip()
    ] == []


def test_each_row_has_something_to_type_that_shows_it() -> None:
    rows = [*ROWS, *((f"D{number}", row) for number, row in DEMANDS)]
    cells = {number: row.split("|")[2] for number, row in rows if "○" not in row}
    assert {number for number, cell in cells.items() if TYPED.search(cell) is None} == set()


@pytest.mark.parametrize(("command", "rest"), COMMANDS, ids=[" ".join(each) for each in COMMANDS])
def test_each_command_of_the_page_is_there_with_its_options(command: str, rest: str) -> None:
    section = CLI.split(f"\n## belfry {command}\n")
    assert len(section) == 2, f"docs/cli.md has no `belfry {command}`"
    for option in OPTION.findall(rest):
        assert option in section[1].split("\n## ")[0]


@pytest.mark.parametrize("option", sorted(set(re.findall(r"[`|] ?`?(--[a-z-]+)", PAGE))))
def test_each_option_that_stands_alone_is_one_of_a_command(option: str) -> None:
    assert option in CLI
