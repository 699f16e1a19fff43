"""Errors that a planted bug raises itself: names, attributes and types that it gets wrong.

Code moves on, and a plant whose text is still found may call what is called otherwise by now.  It
then ends in a TypeError at each step, which any simulator would notice: it shows nothing of the bug
that it is named after.

    plant     row.due_at ─► AttributeError in the function that it changes     its own: refused
    plant     due_ms + 1 ─► AssertionError far away, or an event too late      what it is for
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

OWN: Final = (TypeError, NameError, AttributeError)
NAMES: Final = frozenset({*(each.__name__ for each in OWN), "UnboundLocalError"})
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')
_TOLD: Final = re.compile(r"^raised: (.+)$", re.MULTILINE)
_PLACE: Final = re.compile(r"\w+ in ([\w/.]+):(\d+) \d+")


class Raised:
    """Counts such errors by kind and place, as they are caught in a world."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def error(self, error: BaseException | None) -> None:
        """An error that somebody caught, with those from which it follows."""
        while error is not None:
            if isinstance(error, OWN) and (frames := extract_tb(error.__traceback__)):
                self._count(type(error).__name__, frames[-1].filename, frames[-1].lineno or 0)
            error = error.__cause__ or error.__context__

    def of_log(self, exc_info: Any) -> None:
        """What a line of the log was given of an error; it is written where that is caught."""
        if isinstance(exc_info, tuple):
            exc_info = exc_info[1]
        self.error(exc_info if isinstance(exc_info, BaseException) else sys.exc_info()[1])

    def of_fault(self, where: str) -> None:
        """A fault that the engine tells of: the lines that led to it, and its kind."""
        kind, frames = where.rsplit(maxsplit=1)[-1], _FRAME.findall(where)
        if kind in NAMES and frames:
            self._count(kind, frames[-1][0], int(frames[-1][1]))

    def _count(self, kind: str, file: str, line: int) -> None:
        self.counts[f"{kind} in {file.rpartition('/app/')[2]}:{line}"] += 1


def own_errors(output: str, before: Mapping[str, str], behind: Mapping[str, str]) -> list[str]:
    """What a run says was raised in functions that differ; the texts are by file below app/."""
    changed = {file: list(_changed(before[file], behind[file])) for file in behind}
    return [
        place.group()
        for line in _TOLD.findall(output)
        for place in _PLACE.finditer(line)
        if any(int(place[2]) in lines for lines in changed.get(place[1], ()))
    ]


def texts_before(behind: Mapping[str, str], app: Path) -> dict[str, str]:
    """The same files as they are shipped."""
    return {file: (app / file).read_text(encoding="utf-8") for file in behind}


def _changed(before: str, behind: str) -> Iterator[range]:
    """The lines of each function of the later text that the earlier one has not got so."""
    known = {name: ast.dump(node) for name, node in _functions(ast.parse(before))}
    for name, node in _functions(ast.parse(behind)):
        if known.get(name) != ast.dump(node):
            yield range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _functions(
    body: ast.AST, within: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(body):
        name = f"{within}.{getattr(node, 'name', '')}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node
        yield from _functions(node, name if hasattr(node, "name") else within)
