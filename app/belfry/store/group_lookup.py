"""Where a tenant's schedules lie, by the rows of key groups; for those who only look.

    asked as its home       the group is at home        here
                            it lies elsewhere           there, to be asked as handed on
                            it is on its way            nowhere: ask again
    asked as handed on      all of it is here           here
                            anything else               nowhere: ask again

It is asked behind a look: rows leave or come only while the group is on its way, so what was seen
was all there was if they lie here then.
"""

from __future__ import annotations

from belfry.placement.key_groups import KeyGroups
from belfry.store.layout.groups import HELD, HERE, decode_group, home_key, lies_key
from belfry.store.layout.keys import named_key
from belfry.store.ordered_map import OrderedMap


def lies_at(
    rows: OrderedMap, groups: KeyGroups, here: int, tenant: str, *, handed_on: bool
) -> int | None:
    """The partition where what a tenant has, as far as this one is asked, lies; None: ask again."""
    group = groups.of(tenant)
    if groups.home(group) != here:
        # As one of the homes of a spread tenant it is asked for what never moves.
        found = rows.get(named_key(lies_key(group))) if handed_on else None
        all_here = found is not None and decode_group(found).phase == HERE
        return here if all_here or not handed_on else None
    found = rows.get(named_key(home_key(group)))
    row = None if found is None else decode_group(found)
    if row is None or tenant.encode() in row.stays:
        return here
    return None if row.phase == HELD else row.at
