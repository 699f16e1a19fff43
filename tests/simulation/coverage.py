"""What the worlds of a run came by: states, transitions, outcomes, and what the shell said.

    ownership   each row of its table: a state, and what happened to it
    outcome     what became of a request: its action, and the outcome that was told
    said        each kind of line in the workers' log: fenced off, starts over, …
    struck      faults and failpoints, as before

A count of nothing shows what the seeds cannot judge.  `missing` names what the tables hold and no
world came by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from belfry.engine import ownership

OWNERSHIP: Final = "ownership"
OUTCOME: Final = "outcome"
SAID: Final = "said"


class _Counted(dict[Any, Any]):
    """A table that counts which of its rows are asked for."""

    def __init__(self, table: dict[Any, Any], covered: Counter[str]) -> None:
        super().__init__(table)
        self._covered = covered

    def get(self, key: Any, default: Any = None) -> Any:
        """The row of a key."""
        self._covered[row(*key)] += 1
        return super().get(key, default)


def row(state: ownership.Ownership, event: ownership.Event) -> str:
    """What a row of the table of ownership is counted as."""
    return f"{OWNERSHIP} {state.name}, {event.name}"


@contextmanager
def counted(covered: Counter[str]) -> Iterator[None]:
    """Within it, rows of the table of ownership are counted."""
    table: Any = ownership.TABLE
    module: Any = ownership
    module.TABLE = _Counted(table, covered)
    try:
        yield
    finally:
        module.TABLE = table


def missing(covered: Counter[str]) -> list[str]:
    """The rows of the table that no world came by."""
    return [row(*key) for key in ownership.TABLE if not covered[row(*key)]]


def told(covered: Counter[str]) -> Iterator[str]:
    """What there was, kind by kind, and what there was not."""
    for kind in (OWNERSHIP, OUTCOME, SAID):
        head = f"{kind} "
        found = sorted((n, c) for n, c in covered.items() if n.startswith(head))
        listed = "; ".join(f"{name.removeprefix(head)}: {count}" for name, count in found)
        yield f"{kind} ({len(found)}): {listed}"
    left = missing(covered)
    yield f"never ({len(left)} of {len(ownership.TABLE)}): " + "; ".join(left)
