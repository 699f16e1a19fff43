"""Where a tenant's schedules lie, by the rows of key groups; for readers who change nothing.

    asked as its home       the group is at home        here
                            it lies elsewhere           there, to be asked as handed on
                            it is on its way            nowhere: ask again
    asked as handed on      all of it is here           here
                            anything else               nowhere: ask again

It is asked behind a look: rows leave or come only while the group is on its way, so if they lie
here then, the look has seen all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from belfry.placement.key_groups import KeyGroups
from belfry.store.layout.groups import (
    HELD,
    HERE,
    HOME_PREFIX,
    NOWHERE,
    decode_group,
    group_of,
    home_key,
    lies_key,
)
from belfry.store.layout.keys import named_key
from belfry.store.ordered_map import OrderedMap


def lies_at(
    rows: OrderedMap, groups: KeyGroups, here: int, tenant: str, *, handed_on: bool
) -> int | None:
    """The partition of a tenant's rows, as far as this one is asked for them; None: ask again."""
    group = groups.of(tenant)
    if groups.home(group) != here:
        # As one of the homes of a spread tenant it is asked for rows that never move.
        found = rows.get(named_key(lies_key(group))) if handed_on else None
        all_here = found is not None and decode_group(found).phase == HERE
        return here if all_here or not handed_on else None
    found = rows.get(named_key(home_key(group)))
    row = None if found is None else decode_group(found)
    if row is None or tenant.encode() in row.stays:
        return here
    return None if row.phase == HELD else row.at


def unsettled(rows: Sequence[Mapping[bytes, bytes]], homes: int = 0) -> int | None:
    """A group that was on its way when these rows of groups were read; None where none was.

    `rows` are those of each partition, from 0 on, which were read one after the other: the group
    may have left one that was read later, and come to one that was read before.  `homes` is how
    many of the partitions are homes, 0 for all.

        home says        at 2, rests        at 2, rests       nothing         goes to 2
        partition 2      all is here        nothing           all is here     some is here
        so               it lies at 2       it moved          it moved        it moves
    """
    homes = homes or len(rows)
    for here, of_partition in enumerate(rows):
        for key, packed in of_partition.items():
            group, row = group_of(key), decode_group(packed)
            if row.to != NOWHERE:
                return group
            if key.startswith(HOME_PREFIX):
                there, wanted = row.at, lies_key(group)
                moved = there != here and (there >= len(rows) or wanted not in rows[there])
            else:
                found = rows[group % homes].get(home_key(group))
                moved = found is None or decode_group(found).at != here
            if moved:
                return group
    return None
