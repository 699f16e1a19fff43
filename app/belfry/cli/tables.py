"""Tables for people at a terminal, by rich: no cell is cut, and no cell can steer the terminal.

    worker   state    pending   lag   next due                   fires/s
    ────────────────────────────────────────────────────────────────────
    w1       ready      1,204                                        200
       3     firing     1,204     7   2026-12-01T09:00:00.000Z

A cell that is too long for the terminal goes on in the next line, for half an id is useless. Texts
of others are shown as text: control characters as escapes, and brackets as brackets, where rich
would read them as markup.

Programs, pipes and files never get a table. They get JSON or lines, whose form does not depend on
the width of anything; `belfry.cli.shown` has those.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from belfry.cli.shown import plain

if TYPE_CHECKING:
    from rich.table import Table

    from belfry.cli.shown import Printer

# Columns where no terminal says how many it has.
WIDTH: Final = 100


def looked_at(printer: Printer) -> bool:
    """Whether somebody reads the output at a terminal."""
    return printer.for_people and sys.stdout.isatty()


def table_of(*heads: str, numbers: Collection[str] = (), title: str | None = None) -> Table:
    """A table with these columns, of which those in `numbers` stand at the right."""
    from rich import box
    from rich.table import Table

    shown = None if title is None else plain(title)
    made = Table(title=shown, title_justify="left", box=box.SIMPLE_HEAD)
    for name in heads:
        made.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    return made


def add_row(table: Table, *cells: str, style: str = "") -> None:
    """Add cells as text, whatever they hold; missing cells are empty."""
    from rich.text import Text

    table.add_row(*(Text(plain(cell)) for cell in cells), style=style)


def print_table(table: Table) -> None:
    """Print it to stdout, as wide as the terminal is, or `WIDTH` columns without a terminal."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    console.print(table)
