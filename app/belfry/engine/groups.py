"""Key groups that are not simply at home: where they lie, and which way their requests go.

A tenant's requests always come to its home, so a sender never has to know where its group lies.
The home knows, by a row of its changelog:

    at home    the group lies here              judged here
               the group lies at partition 2    sent on there, as handed on
               the group moves                  the request waits here, as a row
    there      handed on, all of it is here     judged here
               anything else                    to the home, as all that is misrouted

A request that reaches partition 2 without the home is sent to the home, even while the group lies
there: else it could overtake one that is on its way from there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.reports import SourcePartition
from belfry.engine.undo import Tracked, UndoLog
from belfry.placement.key_groups import KeyGroups
from belfry.schedules.identity import generation_at
from belfry.store.layout.groups import (
    ARRIVING,
    GIVE,
    HELD,
    HELD_END,
    HELD_PREFIX,
    HERE,
    HOME_END,
    HOME_PREFIX,
    LEAVING,
    LIES_END,
    LIES_PREFIX,
    NOWHERE,
    GroupRow,
    decode_group,
    encode_group,
    group_of,
    home_key,
    lies_key,
)
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.tenants.regrouped import Regrouped
from belfry.tenants.step_tenants import StepTenants

# Ways of a request, besides a partition that it is sent on to.
USUAL: Final = -1
HANDED: Final = -2
WAITS: Final = -3

# While a group is in one of these its tenants' events wait.
QUIET: Final = frozenset({GIVE, LEAVING, ARRIVING})
MOST_KNOWN: Final = 100_000


def position_of(place: SourcePartition, tenant: Tenant, offset: int) -> int:
    """The position of a request among those that a tenant's schedules ever had: no other has it.

    That is its offset; where the tenant's group has come from elsewhere, and its schedules have had
    requests of these offsets before, the partition stands above it.
    """
    spreads = *tenant.effective.policy.former_spreads, tenant.spread
    if spreads != (1,) or place.homes.of(tenant.name) == place.partition:
        return offset
    return generation_at(place.partition + 1, offset)


class GroupFigures(NamedTuple):
    """Of one partition: groups that lie away from it as their home, groups that are on their way
    from, to or by it, and requests that wait for them.
    """

    away: int = 0
    moving: int = 0
    waiting: int = 0


class Groups:
    """The key groups of one partition whose home is elsewhere, or that lie elsewhere.

    `homes` are those whose home this is, `lies` those that are here, come or leave; `held` counts
    the requests that wait for each.  `some` says whether there is any of the first two, which is
    all that is asked where nothing has ever moved.  `releasing` says that a request that has waited
    is being taken in.
    """

    def __init__(
        self, place: SourcePartition, store: ScheduleStore, tenants: StepTenants, undo: UndoLog
    ) -> None:
        self.here = place.partition
        self._place = place
        self._key_groups = KeyGroups(place.homes.partitions)
        self._store = store
        self._tenants = tenants
        self._undo = undo
        self._of: dict[str, int] = {}
        rows = store.between(HOME_PREFIX, HOME_END)
        self.homes = Tracked(undo, {group_of(key): decode_group(row) for key, row in rows})
        rows = store.between(LIES_PREFIX, LIES_END)
        self.lies = Tracked(undo, {group_of(key): decode_group(row) for key, row in rows})
        self.held: Tracked[int, int] = Tracked(undo)
        for key, _ in store.between(HELD_PREFIX, HELD_END):
            self.held[group_of(key)] = self.held.get(group_of(key), 0) + 1
        self.releasing = False
        self.some = bool(self.homes or self.lies)
        self._show()
        undo.forget()

    # -- asked for requests ----------------------------------------------------------------------

    def of(self, tenant: str) -> int:
        """The key group of a tenant."""
        found = self._of.get(tenant)
        if found is None:
            if len(self._of) > MOST_KNOWN:
                self._of = {}
            found = self._of[tenant] = self._key_groups.of(tenant)
        return found

    def home(self, group: int) -> int:
        """The home of all tenants of a group."""
        return self._key_groups.home(group)

    def is_one(self, group: int) -> bool:
        """Whether there is such a group."""
        return group < self._key_groups.count

    def has_place(self, target: int) -> bool:
        """Whether there is such a partition for groups, by now."""
        return self._place.exists(target)

    def moved(self, tenant: str) -> bool:
        """Whether a tenant's requests may not be kept on the fast path.

        That is so from the step on in which the target was asked, so it changes in no batch in
        which a request has to wait.
        """
        return bool(self.homes) and self.of(tenant) in self.homes

    def way(self, tenant: str, *, handed_on: bool) -> int:
        """Which way a request of a tenant goes that was read here, `handed_on` by its home or not.

        A partition to send it on to; `WAITS` here; `HANDED`: judge it as its home would; `USUAL`.
        """
        group = self.of(tenant)
        if self.home(group) != self.here:
            row = self.lies.get(group)
            return HANDED if handed_on and row is not None and row.phase == HERE else USUAL
        row = self.homes.get(group)
        if row is None or self.releasing:
            return USUAL
        if row.phase == HELD or group in self.held:
            return WAITS
        if row.at == self.here or tenant.encode() in row.stays:
            return USUAL
        return row.at

    def figures(self) -> GroupFigures:
        """How many groups are away, or on their way, and how much waits; from any thread."""
        homes, lies = list(self.homes.values()), list(self.lies.values())
        moving = sum(row.phase == HELD for row in homes) + sum(row.phase in QUIET for row in lies)
        away = sum(row.at != self.here for row in homes)
        return GroupFigures(away, moving, sum(list(self.held.values())))

    # -- changed by moves ------------------------------------------------------------------------

    def note_home(self, group: int, row: GroupRow | None) -> None:
        """Keep the home's record of a group; None: it lies here and nothing waits for it."""
        if row is not None:
            self.homes[group] = row
        elif group in self.homes:
            del self.homes[group]
        self._store.note(home_key(group), None if row is None else encode_group(row))
        self._count()

    def rests(self, group: int, row: GroupRow) -> None:
        """A group lies where its row says from now on, and goes nowhere."""
        at_home = row.at == self.here and group not in self.held
        self.note_home(group, None if at_home else row)

    def note_lies(self, group: int, row: GroupRow | None) -> None:
        """Keep the partition's record of a group; None: nothing is here, or all as at home."""
        before = self.lies.get(group)
        if row is not None:
            self.lies[group] = row
        elif before is not None:
            del self.lies[group]
        self._store.note(lies_key(group), None if row is None else encode_group(row))
        self._count()
        if (row and (row.phase, row.stays)) != (before and (before.phase, before.stays)):
            self._undo.attribute(self._tenants, "regrouped")
            self._show()

    def has_all(self, group: int, move: int) -> None:
        """All of a group is here from now on."""
        at_home = self.home(group) == self.here
        self.note_lies(group, None if at_home else GroupRow(HERE, self.here, NOWHERE, move))

    def _count(self) -> None:
        self._undo.attribute(self, "some")
        self.some = bool(self.homes or self.lies)

    def _show(self) -> None:
        """Let the next steps see tenants as their groups have them treated."""
        quiet = {group: row.stays for group, row in self.lies.items() if row.phase in QUIET}
        arriving = frozenset(group for group, row in self.lies.items() if row.phase == ARRIVING)
        away = frozenset(group for group, row in self.lies.items() if row.phase == HERE)
        seen = Regrouped(self.of, quiet, arriving, away) if quiet or away else None
        self._tenants.regrouped = seen
        self._tenants.regroupings += 1
