"""What `belfry mirror lost` shows: a line for each request, fire, and gap in what is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from belfry.mirror.looking import Uncounted, losses
from belfry.mirror.losses import FiredBehind, LostRequest
from belfry.mirror.sides import Side
from belfry.schedules.instants import format_instant

Told = tuple[dict[str, Any], str]


def lines(source: Side, target: Side) -> Iterator[Told]:
    """What the source holds behind the marks, partition after partition."""
    for partition in range(target.homes):
        for each in losses(source, target, partition):
            record = {"partition": partition, **_shown(each)}
            yield record, f"{record['what']:8} {partition}@{record['offset']}  {_text(each)}"


def _shown(lost: LostRequest | FiredBehind | Uncounted) -> dict[str, Any]:
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
        return {"what": what, "offset": lost.offset, "times": lost.times, **named}
    return {"what": "unnamed", "offset": None, "times": lost.fires}


def _text(lost: LostRequest | FiredBehind | Uncounted) -> str:
    """For people."""
    if isinstance(lost, LostRequest):
        whose = f"{lost.tenant}/{lost.schedule_id}" if lost.tenant else f"key {lost.key!r}"
        return f"{lost.action or 'request'} of {whose}, written {format_instant(lost.at_ms)}"
    if isinstance(lost, FiredBehind):
        name = lost.name.decode(errors="backslashreplace")
        times = "perhaps" if lost.times is None else f"{lost.times} time(s)"
        return f"{name} fired there, {times}, due {format_instant(lost.due_ms)}"
    return f"{lost.fires} fires that no row names"
