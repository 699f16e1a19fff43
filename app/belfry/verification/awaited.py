"""Fires that are to be acknowledged, and the events that wait until each of them is.

    key      00 61 tenant/fire_id
    value    01 06 locks … │ fired │ until │ due │ version │ id size │ group size │ id │ group

The row is there from the fire to its acknowledgement, or to the end of its time.  Meanwhile it
locks its group (bit 0 of `locks`), its own schedule (bit 1), or both, and due events there wait:

    row of a fire of a, group g, locks 1     b of the group g is due: it waits, for a good reason
    tombstone of that row                    b has to fire

A group may have several fires awaited at once before it is locked.  A verification does not count
them: one that is awaited is a reason for the others to wait.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from belfry.verification.memory import short
from belfry.verification.rows import NotReadable, unpacked

AWAITED_KEY: Final = b"\0a"
_AWAITED: Final = Struct(">BBBB8x8x8x4xBB")
_AWAITED_ROW: Final = 6
_OF_GROUP: Final = 1
_OF_SCHEDULE: Final = 2


def locks(key: bytes, value: bytes) -> list[int]:
    """Short names of the locks that an awaited fire holds; raises `NotReadable`."""
    _, _, held, _, name_size, group_size = unpacked(_AWAITED, value, _AWAITED_ROW)
    tenant, slash, _ = key.removeprefix(AWAITED_KEY).partition(b"/")
    name = value[_AWAITED.size : _AWAITED.size + name_size]
    group = value[_AWAITED.size + name_size :]
    if not slash or len(name) != name_size or len(group) != group_size:
        raise NotReadable(f"an awaited fire of {len(value)} bytes with the key {key[:80]!r}")
    found = [group_lock(tenant, group)] if held & _OF_GROUP else []
    return [*found, own_lock(tenant, name)] if held & _OF_SCHEDULE else found


def own_lock(tenant: bytes, schedule_id: bytes) -> int:
    """The lock of one schedule: the short name of the schedule itself."""
    return short(b"%b/%b" % (tenant, schedule_id))


def group_lock(tenant: bytes, group: bytes) -> int:
    """The lock of a group, by a name that no schedule has."""
    return short(b"%b\0%b" % (tenant, group))
