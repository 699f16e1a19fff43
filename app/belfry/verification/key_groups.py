"""Key groups that move between partitions, as rows of changelogs tell of them.

    key    00 67 6c  group u32                         `\\0gl`: what a partition has of a group
    row    01 11 phase │ at u32 │ to u32 │ move u64 │ number u64 │ tenants that stay, by size

A step that gives rows away, or takes some in, writes this row too:

    source     row, phase 5 (leaving)     tombstones of what left: none of it fired, or was ended
    target     row, phase 6 (arriving)    rows that came: a marker among them is no fire of here
    target     row, phase 7 or none       the same where it came in the step that ends the move

While a group leaves or comes, it does not fire, so its due schedules have a reason to wait. Number,
digest and pending of the source's manifests are checked as anywhere else.

Where all of a group is, away from its home (phase 7), ids of fires that TRIGGERs asked for are made
of a position that stands above the offset: the home had other requests of the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from belfry.schedules.identity import partition_of
from belfry.verification.memory import Memory, short
from belfry.verification.rows import Logged, NotReadable, unpacked

GROUP_KEY: Final = b"\0g"
HOME_KEY: Final = b"\0gh"
LIES_KEY: Final = b"\0gl"
HELD_KEY: Final = b"\0gw"
LEAST_GROUPS: Final = 4_096
_KEY: Final = Struct(">3sI")
_HELD: Final = Struct(">3sIQ")
_ROW: Final = Struct(">BBBIIQQ")
_GROUP_ROW: Final = 17
# Phases at the home: the group is on its way.
HELD: Final = 2
# Phases elsewhere: to be given away, and nothing has left; some has; some has come; all is here.
GIVE: Final = 4
LEAVING: Final = 5
ARRIVING: Final = 6
HERE: Final = 7
# The group does not fire there.
_QUIET: Final = frozenset({GIVE, LEAVING, ARRIVING})


class GroupSays(NamedTuple):
    """What such a row says: the phase, the partition where the group lies or comes from, the one to
    which it goes, the move, how many of its records were sent or came, and tenants that stay.
    """

    phase: int
    at: int
    to: int
    move: int
    records: int
    stays: frozenset[bytes]


def group_says(value: bytes) -> GroupSays:
    """A row of a group; raises `NotReadable`."""
    _, _, phase, at_partition, to, move, records = unpacked(_ROW, value, _GROUP_ROW)
    stays, at = [], _ROW.size
    while at < len(value):
        end = at + 1 + value[at]
        stays.append(value[at + 1 : end])
        at = end
    if at != len(value):
        raise NotReadable(f"a group that says {value[:80]!r}")
    return GroupSays(phase, at_partition, to, move, records, frozenset(stays))


def group_in(key: bytes) -> int:
    """The group that the key of such a row names."""
    return int(_KEY.unpack(key)[1])


def check_group(key: bytes, value: bytes) -> None:
    """Raises `NotReadable` for a row of groups that is not laid out as specified.

    A request that waits is a row of another kind, and is not looked at.
    """
    if key.startswith(HELD_KEY):
        return
    if len(key) != _KEY.size:
        raise NotReadable(f"a group with the key {key[:80]!r}")
    group_says(value)


def held_offset(key: bytes) -> int:
    """Offset of a request that waited while its group moved, by its key; -1 for another key."""
    return int(_HELD.unpack(key)[2]) if len(key) == _HELD.size else -1


def groups_among(partitions: int) -> int:
    """How many key groups there are: they are counted by the partitions of the changelog."""
    return -(-LEAST_GROUPS // partitions) * partitions


class MovedInStep(NamedTuple):
    """Groups whose rows a transaction gave away, with the tenants that stay, and those that came.

    `here` says whether a group lay there in that transaction, away from its home.
    """

    groups: int
    leaving: dict[int, frozenset[bytes]]
    arriving: frozenset[int]
    here: Callable[[int], bool]

    def left(self, record: Logged) -> bool:
        """Whether the row of a schedule is gone because it left with its group."""
        if record.value is not None or not self.leaving:
            return False
        tenant = record.key.partition(b"/")[0]
        stays = self.leaving.get(group_of(tenant, self.groups))
        return stays is not None and tenant not in stays

    def came(self, record: Logged) -> bool:
        """Whether the row of a schedule may have come along with its group."""
        if not self.arriving:
            return False
        return group_of(record.key.partition(b"/")[0], self.groups) in self.arriving

    def lay_here(self, tenant: bytes) -> bool:
        """Whether a tenant's group lay there, away from its home."""
        return self.here(group_of(tenant, self.groups))


class MovingGroups:
    """Which groups are on their way, in each partition; the memory has it from run to run."""

    def __init__(self, memory: Memory, partitions: int) -> None:
        """`partitions` is how many of them are homes: groups are counted by that."""
        self._memory = memory
        self._partitions = partitions
        self._groups = groups_among(partitions)

    def step(self, partition: int, rows: Sequence[Logged]) -> MovedInStep:
        """The moves of a transaction with these rows; ask before its rows are folded."""
        leaving: dict[int, frozenset[bytes]] = {}
        arriving: set[int] = set()
        for record in rows:
            if not record.key.startswith(LIES_KEY):
                continue
            group = group_in(record.key)
            says = None if record.value is None else group_says(record.value)
            if says is not None and says.phase == LEAVING:
                leaving[group] = says.stays
                continue
            comes = says is not None and says.phase == ARRIVING
            # It may be asked for again in the very step in which the last of it came.
            ends = says is None or says.phase != ARRIVING
            if comes or (ends and self._is_quiet(partition, group)):
                arriving.add(group)
        here = partial(self._lay_here, partition, frozenset(arriving))
        return MovedInStep(self._groups, leaving, frozenset(arriving), here)

    def _lay_here(self, partition: int, came: frozenset[int], group: int) -> bool:
        if group % self._partitions == partition:
            return False
        return group in came or self._memory.is_locked(partition, _lock(group, HERE))

    def fold(self, partition: int, record: Logged) -> None:
        """Remember a row of a group."""
        if record.key.startswith(LIES_KEY):
            group = group_in(record.key)
            phase = 0 if record.value is None else group_says(record.value).phase
            held = [_lock(group)] if phase in _QUIET else []
            held += [_lock(group, HERE)] if phase == HERE else []
            self._memory.lock(partition, short(record.key), held)

    def waits(self, partition: int, tenant: str) -> bool:
        """Whether due schedules of a tenant wait there because its group is on its way."""
        return self._is_quiet(partition, group_of(tenant.encode(), self._groups))

    def _is_quiet(self, partition: int, group: int) -> bool:
        return self._memory.is_locked(partition, _lock(group))


def group_of(tenant: bytes, groups: int) -> int:
    """The key group of a tenant, of so many."""
    return partition_of(tenant, groups)


def _lock(group: int, phase: int = 0) -> int:
    """The key of a group on its way, or in a phase, among the locks of fires."""
    return short(b"\0key group %d %d" % (group, phase))
