"""The table of files on the page of each room, made from the first sentences of its modules.

``python -m tests.architecture.room_pages`` writes them anew (`make docs`); `test_room_pages.py`
compares the pages with what this module makes, so no table can fall behind the code.  A page says
by a comment where its table begins and where it ends:

    <!-- generated: files -->
    <!-- end -->

Pure modules of a room of the shell are marked.

The pages of `engine/` and `store/` have tables that are written by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.architecture.tree import PACKAGE, pure_module_files, python_files, rooms, syntax

BY_HAND: Final = ("engine", "store")
PART: Final = re.compile(r"(<!-- generated: files -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD: Final = "| file | what it does |\n|---|---|\n"
# A sentence ends before a capital letter or a name in code: "i.e. this" has no end in it.
SENTENCE: Final = re.compile(r".+?[.?!](?=\s+[A-Z`]|$)")


def page(room: str) -> Path:
    """The page of a room."""
    return PACKAGE / room / "README.md"


def first_sentence(docstring: str) -> str:
    """The first sentence of a module's docstring as a cell of a table, without its full stop."""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    found = SENTENCE.match(paragraph)
    assert found is not None, f"the first paragraph ends with no sentence: {paragraph!r}"
    return found[0].removesuffix(".").replace("``", "`").replace("|", "\\|")


def listed(room: str) -> Iterator[tuple[str, Path]]:
    """Names of a room's files as its table shows them; a folder stands for its `__init__.py`."""
    folder = Path("app/belfry") / room
    for path in python_files(str(folder)):
        if path.name != "__init__.py":
            yield str(path.relative_to(folder)), path
        elif path.parent != folder:
            yield f"{path.parent.relative_to(folder)}/", path
        elif holds_code(path):
            yield path.name, path


def holds_code(path: Path) -> bool:
    """Whether a module has more than its docstring."""
    return any(not isinstance(node, ast.Expr) for node in syntax(path).body)


def table(room: str) -> str:
    """The table of a room's files; a folder comes right before what lies in it."""
    alone = set(pure_module_files())
    rows = (
        f"| `{name}`{' (pure)' if path in alone else ''}"
        f" | {first_sentence(ast.get_docstring(syntax(path)) or '')} |\n"
        for name, path in sorted(listed(room))
    )
    return HEAD + "".join(rows)


def renewed(room: str, text: str) -> str:
    """The page of a room with its table as it has to be."""
    return PART.sub(lambda part: f"{part[1]}\n{table(room)}\n{part[2]}", text)


def main() -> None:
    """Write the tables of all pages anew."""
    for room in rooms():
        if room not in BY_HAND:
            text = page(room).read_text(encoding="utf-8")
            page(room).write_text(renewed(room, text), encoding="utf-8")


if __name__ == "__main__":
    main()
