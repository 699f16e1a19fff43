"""Lines of `belfry apply` and `diff` on objects that differ, and on the result for each of them.

    $ belfry diff belfry.yaml
          object            field         is      becomes
      +   schedule t/a      interval_ms   -       60000
      ~   policy t          max_pending   100     none
      -   schedule t/old

A difference is `belfry.declared.difference.Altered`. People see a table of fields, or a line for
each object that was written; programs get the same as JSON, with every value whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.shown import plain
from belfry.cli.tables import add_row, print_table, table_of

if TYPE_CHECKING:
    from belfry.declared.applying import Done
    from belfry.declared.difference import Altered

# Characters of a value in a cell.
LONGEST: Final = 200
# Objects that are named where there may be many.
NAMED: Final = 5
# What `diff` shows before an object, and what `apply` says of one that it has changed.
MARKS: Final = {"create": "+", "update": "~", "remove": "-", "unchanged": "=", "over": "="}
_PAST: Final = {"create": "created", "update": "updated", "remove": "removed"}


def staying(removed: Sequence[Altered]) -> str:
    """Which objects the files declare no longer, and that they stay; up to `NAMED` by name."""
    names = ", ".join(each.name for each in removed[:NAMED])
    more = f" and {len(removed) - NAMED} more" if len(removed) > NAMED else ""
    return (
        f"{len(removed)} objects that the set has made are declared no longer: {names}{more};"
        " they stay, and --prune removes them"
    )


def result(done: Done) -> tuple[dict[str, Any], str]:
    """What became of an object: the object for programs, and the line for people."""
    each = done.altered
    what = "failed" if done.problem is not None else _PAST.get(each.alteration, each.alteration)
    told = {**record_of(each), "result": str(what), "problem": done.problem}
    why = "" if done.problem is None else f": {plain(done.problem)}"
    return told, f"{what:9}  {plain(each.name)}{why}"


def record_of(each: Altered) -> dict[str, Any]:
    """A difference for programs.

    `schedule_id` is null for a policy and for a calendar. `fields` has the name of each field that
    differs, with its value before and after; a value that is not there is null.
    """
    which = {} if each.calendar is None else {"calendar": each.calendar.name}
    return {
        "object": each.name.partition(" ")[0],
        "tenant": each.tenant,
        **which,
        "schedule_id": each.schedule_id,
        "alteration": str(each.alteration),
        "fields": [
            {"name": field.name, "before": field.before, "after": field.after}
            for field in each.fields
        ],
    }


def table(changes: Sequence[Altered]) -> None:
    """What differs, a line for each field.

    An object is named on its first line only.
    """
    if not changes:
        return
    made = table_of("", "object", "field", "is", "becomes")
    for each in changes:
        style = {"create": "green", "update": "yellow", "remove": "red"}[each.alteration]
        head = [MARKS[each.alteration], each.name]
        rows = [(field.name, _cell(field.before), _cell(field.after)) for field in each.fields]
        for row in rows or [("", "", "")]:
            add_row(made, *head, *row, style=style)
            head = ["", ""]
    print_table(made)


def _cell(value: Any) -> str:
    """A value as a cell: text as it is, all else as JSON, cut to `LONGEST` characters."""
    import orjson

    if value is None:
        return "-"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    text = plain(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
