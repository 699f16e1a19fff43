"""What `belfry mirror lost` shows: a line for each request, fire, and gap in what is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from belfry.cli.mirror_sides import Told
from belfry.cli.shown import amount
from belfry.mirror.judged_anew import LostRequest
from belfry.mirror.looking import Lost, losses
from belfry.mirror.losses import FiredBehind
from belfry.mirror.sides import Side
from belfry.schedules.instants import format_instant


def lines(source: Side, target: Side) -> Iterator[Told]:
    """The records of the source behind the marks, partition after partition."""
    for partition, each in losses(source, target):
        record = {"partition": partition, **_shown(each)}
        yield record, f"{record['what']:8} {partition}@{record['offset']}  {_text(each)}"


def _shown(lost: Lost) -> dict[str, Any]:
    """For programs: `lost` requests, and what `fired` there or comes `twice`."""
    if isinstance(lost, LostRequest):
        at = format_instant(lost.at_ms)
        named = {"action": lost.action, "tenant": lost.tenant, "schedule_id": lost.schedule_id}
        return {"what": "lost", "offset": lost.offset, "at": at, **named}
    if isinstance(lost, FiredBehind):
        tenant, _, schedule_id = lost.name.decode(errors="backslashreplace").partition("/")
        due = format_instant(lost.due_ms)
        named = {"tenant": tenant, "schedule_id": schedule_id, "due": due}
        what = "twice" if lost.again else "fired"
        told = {"what": what, "offset": lost.offset, "times": lost.times, **named}
        return told | {"same_id": lost.same_id} if lost.again else told
    return {"what": "unnamed", "offset": None, "times": lost.fires}


def _text(lost: Lost) -> str:
    """For people."""
    if isinstance(lost, LostRequest):
        whose = f"{lost.tenant}/{lost.schedule_id}" if lost.tenant else f"key {lost.key!r}"
        return f"{lost.action or 'request'} of {whose}, written {format_instant(lost.at_ms)}"
    if isinstance(lost, FiredBehind):
        name = lost.name.decode(errors="backslashreplace")
        times = "perhaps" if lost.times is None else amount(lost.times, "time")
        by = ", and may come here by another id" if lost.again and not lost.same_id else ""
        return f"{name} fired there, {times}, due {format_instant(lost.due_ms)}{by}"
    return f"{lost.fires} fires that no row names"
