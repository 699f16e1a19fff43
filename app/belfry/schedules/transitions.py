"""The effect of a request on a schedule: the transition table.

The table is the whole truth; the one in `engine/README.md` is generated from it.

    request ─► state of its schedule ─► TABLE[state, action] ─► Transition ─► `engine/transitions`

`ABSENT` is a schedule that the store knows nothing of, `OVER` one whose end is remembered for a
day.  The difference is what lets a CANCEL that came too late be told TOO_LATE and not NOT_FOUND.
Only the table decides which transition it is; the engine then makes checks that a table cannot
hold, such as of versions, quotas and policies.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final


class State(StrEnum):
    """Where a schedule stands when a request arrives.

    The order is that of the columns of `_ROWS`.
    """

    ABSENT = "ABSENT"
    PENDING = "PENDING"
    PAUSED = "PAUSED"
    OVER = "OVER"

    # Looked up per request: Enum's own hash is a Python function, the text's is not.
    __hash__ = str.__hash__


class Transition(Enum):
    """The action of the engine; the value is the cell of the table in `engine/README.md`."""

    BEGIN = "a new life, ACCEPTED"
    REPLACE = "a new version, UPDATED; or UNCHANGED"
    END = "the schedule goes, CANCELLED"
    PAUSE = "it waits no more for its instant, PAUSED"
    RESUME = "it waits again, RESUMED"
    EXTRA = "an extra fire, TRIGGERED"
    ACKNOWLEDGE = "its fire is awaited no more, UPDATED; or UNCHANGED"
    ACKNOWLEDGE_LAST = "its last fire is awaited no more, UPDATED; or NOT_FOUND"
    UNCHANGED = "UNCHANGED"
    CONFLICT = "CONFLICT"
    TOO_LATE = "TOO_LATE"
    NOT_FOUND = "NOT_FOUND"


_ROWS: Final[dict[str, tuple[Transition, Transition, Transition, Transition]]] = {
    # action: ABSENT, PENDING, PAUSED, OVER
    "UPSERT": (Transition.BEGIN, Transition.REPLACE, Transition.REPLACE, Transition.BEGIN),
    "CREATE": (Transition.BEGIN, Transition.CONFLICT, Transition.CONFLICT, Transition.BEGIN),
    "CANCEL": (Transition.NOT_FOUND, Transition.END, Transition.END, Transition.TOO_LATE),
    "PAUSE": (Transition.NOT_FOUND, Transition.PAUSE, Transition.UNCHANGED, Transition.TOO_LATE),
    "RESUME": (Transition.NOT_FOUND, Transition.UNCHANGED, Transition.RESUME, Transition.TOO_LATE),
    "TRIGGER": (Transition.NOT_FOUND, Transition.EXTRA, Transition.EXTRA, Transition.TOO_LATE),
    "ACK": (
        Transition.ACKNOWLEDGE_LAST,
        Transition.ACKNOWLEDGE,
        Transition.ACKNOWLEDGE,
        Transition.ACKNOWLEDGE,
    ),
}
TABLE: Final[dict[tuple[State, str], Transition]] = {
    (state, action): step
    for action, steps in _ROWS.items()
    for state, step in zip(State, steps, strict=True)
}


def table() -> str:
    """The table as Markdown, actions down and states across, for the engine's README."""
    actions = list(dict.fromkeys(action for _, action in TABLE))
    lines = [_cells("request", *(state.value for state in State)), "|---" * (len(State) + 1) + "|"]
    for action in actions:
        steps = (TABLE[state, action].value for state in State)
        lines.append(_cells(f"`{action}`", *steps))
    return "\n".join(lines)


def _cells(*texts: str) -> str:
    return f"| {' | '.join(texts)} |"
