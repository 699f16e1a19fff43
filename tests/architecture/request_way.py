"""The way of a general request through the engine, counted in calls from one file to another.

``python -m tests.architecture.request_way`` tells it.  Requests of one instant with a header of
their own go the general way (a plain one is left as bytes and goes the fast path).  Two batches are
taken in by engines that know the tenant already, one with a request more than the other, and the
calls of one are subtracted from those of the other: what is left is the cost of that request, from
the record as it was fetched to the effects of the step, without what is done once for a batch.

Calls from one file of belfry to another are of two kinds:

- *on the way*: the called function calls on into another file, so the request is handed on;
- *asked*: the called function answers by itself, as a check, a look-up or an encoder does.

What is on the way has to be understood to follow a request; what is asked can be read by name.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader
from tests.architecture.tree import PACKAGE

NOW_MS: Final = 1_800_000_000_000
GENERAL: Final[dict[str, Any]] = {"headers": [{"name": "lang", "value": b"en"}]}
PLAIN: Final[dict[str, Any]] = {}


class Call(NamedTuple):
    """A call from one file to another, and whether the called function calls on."""

    caller: str
    called: str
    function: str
    on_the_way: bool


@dataclass(slots=True)
class _Entered:
    caller: str
    called: str
    function: str
    depth: int
    calls_on: bool = field(default=False)


class Trace:
    """What is called between files of the package while it is the interpreter's profiler."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: list[_Entered] = []
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Hear of a call or of a return."""
        if event == "call":
            self._depth += 1
            caller, called = _file(frame.f_back), _file(frame)
            if caller and called and caller != called:
                if self._open:
                    self._open[-1].calls_on = True
                self._open.append(_Entered(caller, called, frame.f_code.co_name, self._depth))
        elif event == "return":
            if self._open and self._open[-1].depth == self._depth:
                ended = self._open.pop()
                self.calls.append(Call(ended.caller, ended.called, ended.function, ended.calls_on))
            self._depth -= 1


def way(fields: dict[str, Any]) -> Counter[Call]:
    """The calls that one more request with these fields costs."""
    return _taken_in(fields, 4) - _taken_in(fields, 3)


def on_the_way(calls: Counter[Call]) -> int:
    """How many of the calls hand the request on."""
    return sum(times for call, times in calls.items() if call.on_the_way)


def _taken_in(fields: dict[str, Any], number: int) -> Counter[Call]:
    """What is called while an engine that knows the tenant takes so many requests in."""
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    place = SourcePartition("belfry.schedules", 0, Homes(1))
    engine = PartitionEngine(place, ScheduleStore(MemoryMap()), RequestReader(), tenants)
    engine.accept(_batch(fields, 0, 2), NOW_MS)
    engine.seal(owner_epoch=1)
    engine.committed(1, NOW_MS)
    trace, before = Trace(), sys.getprofile()
    batch = _batch(fields, 2, number)
    sys.setprofile(trace)
    try:
        engine.accept(batch, NOW_MS)
    finally:
        sys.setprofile(before)
    return Counter(trace.calls)


def _batch(fields: dict[str, Any], first: int, number: int) -> SourceBatch:
    records = [_record(fields, offset) for offset in range(first, first + number)]
    size = sum(len(value or b"") for _, _, _, value, _ in records)
    return SourceBatch(first, first + number, records, size=size)


def _record(fields: dict[str, Any], offset: int) -> SourceRecord:
    asked = {"tenant": "demo", "schedule_id": f"order-{offset}", "at": NOW_MS + 60_000, **fields}
    value = framing.single_object("ScheduleRequest") + catalogue.encode("ScheduleRequest", asked)
    return offset, NOW_MS, None, value, None


def _file(frame: FrameType | None) -> str:
    """The file of a frame within the package; empty where it lies outside."""
    if frame is None:
        return ""
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else ""


def main() -> None:
    """Tell the way of a general request, and of a plain one."""
    for name, fields in (("general", GENERAL), ("plain", PLAIN)):
        calls = way(fields)
        asked = sum(calls.values()) - on_the_way(calls)
        print(f"{name}: {on_the_way(calls)} calls on the way, {asked} asked on it")
        for call, times in calls.items():
            mark = "──►" if call.on_the_way else "  ?"
            print(f"    {call.caller} {mark} {call.called} {call.function} × {times}")


if __name__ == "__main__":
    main()
