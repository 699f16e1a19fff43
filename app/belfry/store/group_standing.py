"""How key groups stand that are not simply at home, out of the rows of several partitions.

    home says            elsewhere                        state
    asked                                                 ASKED      the target has not answered yet
    on its way           the source gives it              MOVING     rows leave, requests wait
    lies at 2            partition 2: some of it came     ARRIVING   rows come, what waited follows
    lies at 2, 3 wait    partition 2: all is here         RELEASING  what waited is sent on
    lies at 2            partition 2: all is here         RESTS

Rows of partitions are read one after the other, so the state of one of them may be older than that
of another.  A group that has just moved may show as on its way; the next look tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from belfry.store.layout.groups import (
    ARRIVING,
    ASKED,
    HELD,
    HELD_END,
    HELD_PREFIX,
    HERE,
    HOME_END,
    HOME_PREFIX,
    LIES_END,
    LIES_PREFIX,
    NOWHERE,
    GroupRow,
    decode_group,
    group_of,
)
from belfry.store.layout.keys import name_in, named_key
from belfry.store.ordered_map import OrderedMap

# Requests that wait are counted up to here.
MOST_COUNTED: Final = 100_000


class GroupState(StrEnum):
    """How a key group stands."""

    ASKED = "asked"
    MOVING = "moving"
    ARRIVING = "arriving"
    RELEASING = "releasing"
    RESTS = "rests"


class SeenRow(NamedTuple):
    """The record of one partition about a group; `waiting` requests wait for it there.

    `at_home`: it is the home of the group that says so.
    """

    partition: int
    group: int
    at_home: bool
    row: GroupRow
    waiting: int = 0


class Standing(NamedTuple):
    """How a group stands: where it lies, and where it goes (None: it rests).

    `move` names the last move; `records` of it have left the source, or come to the target.
    """

    group: int
    home: int
    state: GroupState
    lies: int
    goes: int | None
    move: int
    records: int
    waiting: int


def seen_in(rows: OrderedMap, partition: int) -> list[SeenRow]:
    """The rows of key groups in a partition's store; empty if no group has moved."""
    held = rows.scan(named_key(HELD_PREFIX), named_key(HELD_END))
    waiting = Counter(group_of(name_in(key)) for key, _ in islice(held, MOST_COUNTED))
    found: list[SeenRow] = []
    for start, end in ((HOME_PREFIX, HOME_END), (LIES_PREFIX, LIES_END)):
        at_home = start == HOME_PREFIX
        for key, packed in rows.scan(named_key(start), named_key(end)):
            group = group_of(name_in(key))
            waits = waiting[group] if at_home else 0
            found.append(SeenRow(partition, group, at_home, decode_group(packed), waits))
    return found


def standings(seen: Iterable[SeenRow], partitions: int) -> dict[int, Standing]:
    """How each group stands of which there is a row, by group; `partitions` is that of homes."""
    homes: dict[int, SeenRow] = {}
    elsewhere: dict[tuple[int, int], GroupRow] = {}
    for each in seen:
        if each.at_home:
            homes[each.group] = each
        else:
            elsewhere[each.group, each.partition] = each.row
    groups = sorted({*homes, *(group for group, _ in elsewhere)})
    found = {}
    for group in groups:
        lying = {place: row for (of, place), row in elsewhere.items() if of == group}
        standing = _standing(group, group % partitions, homes.get(group), lying)
        if standing is not None:
            found[group] = standing
    return found


def _standing(
    group: int, home: int, seen: SeenRow | None, lying: dict[int, GroupRow]
) -> Standing | None:
    """How one group stands; None where only remains of an earlier move were seen."""
    if seen is None:
        # It has come home: its home knows of it no more, and may still take its rows in.
        row = lying.get(home)
        if row is None or row.phase != ARRIVING:
            return None
        return Standing(group, home, GroupState.ARRIVING, home, None, row.move, row.number, 0)
    row, waiting = seen.row, seen.waiting
    if row.phase in (ASKED, HELD):
        state = GroupState.ASKED if row.phase == ASKED else GroupState.MOVING
        given = lying.get(row.at)
        records = given.number if given is not None and given.to != NOWHERE else 0
        return Standing(group, home, state, row.at, row.to, row.move, records, waiting)
    there = lying.get(row.at)
    phase = None if there is None else there.phase
    comes = phase == ARRIVING if row.at == home else phase != HERE
    rests = GroupState.RELEASING if waiting else GroupState.RESTS
    state = GroupState.ARRIVING if comes else rests
    records = 0 if there is None else there.number
    return Standing(group, home, state, row.at, None, row.move, records, waiting)
