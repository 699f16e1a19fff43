"""Payloads in day files: a row refers to a file that was there, whole, before it (I38).

Rows and references are read by the specification of their bytes, without a line of the engine's.
That what fires is what was asked for, once and not early, the check of all fires says.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Entry
from tests.simulation.day_objects import DAY_MS, FOLDER
from tests.simulation.stores import PENDING, bare
from tests.simulation.trail import Step
from tests.simulation.treated import row_of

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.world import World

_FLAGS_AT: Final = 3
_AWAY: Final = 32
# Format, day, partition and number; offset, size and digest follow.
_REFERENCE: Final = Struct(">BIH8s")


def check_filed(world: World, partitions: list[list[Step]]) -> list[str]:
    """All that is wrong with rows whose payloads are away."""
    return [what for steps in partitions for step in steps for what in _step(world, step)]


def ever_away(partitions: list[list[Step]]) -> set[tuple[str, str]]:
    """Tenant and id of all schedules whose payload has ever been away."""
    rows = [entry for steps in partitions for step in steps for entry in step.rows]
    names = [(entry.key or b"").decode() for entry in rows if file_of(entry) is not None]
    return {(tenant, name) for tenant, _, name in (each.partition("/") for each in names)}


def was_late(steps: list[Step], one: Definition) -> bool:
    """Whether its payload was away when the watermark passed its instant: its row was held then."""
    name = f"{one.sent.tenant}/{one.sent.schedule_id}".encode()
    before = False
    for step in steps[one.accepted_in.index :]:
        now = [file_of(entry) is not None for entry in step.rows if entry.key == name]
        if step.manifest is not None and step.manifest.watermark_ms >= one.due_ms:
            return before or any(now)
        before = now[-1] if now else before
    return before


def _step(world: World, step: Step) -> Iterator[str]:
    for entry in step.rows:
        if (path := file_of(entry)) is None:
            continue
        world.days.struck.append("payload aside")
        since = world.days.since.get(path)
        if since is None or since >= entry.order:
            named = (entry.key or b"").decode()
            yield f"I38 the row of {named} at {entry.offset} refers to {path}, which was not there"


def file_of(entry: Entry) -> str | None:
    """Where the payload of a row lies, None where it is in the row, or this is none."""
    key, record = entry.key or b"", bare(entry.value or b"")
    if key[:1] == b"\0" or record[1:2] != bytes([PENDING]) or not record[_FLAGS_AT] & _AWAY:
        return None
    _, day, partition, number = _REFERENCE.unpack_from(row_of(record).payload)
    at = datetime.fromtimestamp(day * DAY_MS / 1000, UTC)
    return f"{FOLDER}/{at:%Y-%m-%d}/{partition}-{number.hex()}.day"
