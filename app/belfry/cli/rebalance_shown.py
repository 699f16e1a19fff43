"""What `belfry rebalance plan` prints: partitions, what would move, and what stays uneven.

A tenant that alone is more than a partition should carry cannot be helped by a move: it has to be
spread. So partitions that stay beyond the limit are named, with the tenant that weighs most there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.shown import amount, plain
from belfry.placement.key_groups import KeyGroups
from belfry.placement.loads import Loads, LoadVector, Measure
from belfry.placement.moves import Move, Weights, planned

if TYPE_CHECKING:
    from belfry.cli.rebalance_loads import MeasuredTenants

# So many tenants of a group, and so many moves, are shown to people.
MOST_NAMES: Final = 3
MOST_MOVES: Final = 20


@dataclass(frozen=True)
class Plan:
    """The present loads and the moves over so many partitions, of which each may carry `limit`.

    Shares are parts of the whole.
    """

    measured: MeasuredTenants
    loads: Loads
    weights: Weights
    moves: list[Move]
    partitions: int
    limit: float

    @property
    def carried(self) -> list[tuple[float, float]]:
        """The share of each partition now, and behind the moves."""
        now = self.weights.by_partition(self.partitions)
        return list(zip(now, self.weights.by_partition(self.partitions, self.moves), strict=True))

    @cached_property
    def now(self) -> dict[int, LoadVector]:
        """What each partition carries now; empty without partitions."""
        found = defaultdict(LoadVector, self.loads.fixed)
        for group, load in self.loads.by_group.items():
            lies = self.weights.lies[group]
            found[lies] = found[lies].plus(load)
        return found


def planned_of(found: MeasuredTenants, partitions: int, within: float, by: Measure) -> Plan:
    """The plan for the measured loads."""
    groups = KeyGroups(found.homes or found.partitions)
    loads = Loads(found.tenants, groups)
    # Groups away from home have to leave partitions that are to be empty, even groups without load.
    lies = found.lies or {}
    shares = dict.fromkeys(lies, 0.0)
    shares |= {group: load.share_of(loads.total, by) for group, load in loads.by_group.items()}
    weights = Weights(
        shares,
        {group: lies.get(group, groups.home(group)) for group in shares},
        {each: load.share_of(loads.total, by) for each, load in loads.fixed.items()},
    )
    moves = planned(weights, partitions, within)
    return Plan(found, loads, weights, moves, partitions, weights.limit(partitions, within))


def shown(made: Plan) -> dict[str, Any]:
    """The plan for programs: partitions, groups that would move, and tenants that cannot."""
    return {
        "partitions": [
            {"partition": number, **_numbers(made, made.now[number]), **_shares(now, then)}
            for number, (now, then) in enumerate(made.carried)
        ],
        "groups": made.loads.groups.count,
        "moves": [
            {
                "group": each.group,
                "from": each.source,
                "to": each.target,
                "share": round(each.weight, 6),
                **_numbers(made, made.loads.by_group.get(each.group, LoadVector())),
                "tenants": [one.tenant for one in made.loads.tenants.get(each.group, ())],
            }
            for each in made.moves
        ],
        "spread": [each.tenant for each in made.loads.spread],
        "silent": made.measured.silent,
        "missing": list(made.measured.missing),
    }


def _numbers(made: Plan, load: LoadVector) -> dict[str, float | None]:
    held = round(load.held_bytes) if made.measured.metered else None
    return {
        "pending": round(load.pending),
        "fires_per_second": round(load.fires, 3),
        "held_bytes": held,
    }


def _shares(now: float, then: float) -> dict[str, float]:
    return {"share": round(now, 6), "share_then": round(abs(then), 6)}


def lines(made: Plan) -> list[str]:
    """The plan for people."""
    told = [
        f"{'partition':>9} {'pending':>12} {'fires/s':>10} {'bytes':>14} {'share':>8} {'then':>8}"
    ]
    for number, (now, then) in enumerate(made.carried):
        load = made.now[number]
        held = f"{load.held_bytes:,.0f}" if made.measured.metered else "-"
        told.append(
            f"{number:>9} {load.pending:>12,.0f} {load.fires:>10,.1f} {held:>14}"
            f" {now:>8.1%} {abs(then):>8.1%}"
        )
    told += ["", *_moves_lines(made), *_uneven_lines(made)]
    if made.loads.spread:
        names = _names([each.tenant for each in made.loads.spread])
        told.append(f"spread, so where they are they stay: {names}")
    return told


def _moves_lines(made: Plan) -> list[str]:
    """The groups that would move, the heaviest first, and what stays uneven."""
    if not made.moves:
        return ["nothing has to move"]
    moved = sum(each.weight for each in made.moves)
    groups = amount(len(made.moves), "group")
    told = [f"to move: {groups} of {made.loads.groups.count}, {moved:.1%} of the load"]
    heaviest = sorted(made.moves, key=lambda each: -each.weight)
    for each in heaviest[:MOST_MOVES]:
        names = _names([one.tenant for one in made.loads.tenants.get(each.group, ())])
        told.append(
            f"  group {each.group}  {each.source} -> {each.target}  {each.weight:.1%}  {names}"
        )
    if len(heaviest) > MOST_MOVES:
        told.append(f"  and {len(heaviest) - MOST_MOVES} more (--output json has all)")
    return told


def _uneven_lines(made: Plan) -> Iterator[str]:
    """The partitions that stay beyond the limit, and the tenant that weighs most there."""
    behind = {**made.weights.lies, **{each.group: each.target for each in made.moves}}
    for number, (_, then) in enumerate(made.carried):
        if number < made.partitions and then > made.limit:
            told = f"partition {number} stays at {then:.1%}, more than {made.limit:.1%}"
            weights = made.weights.of_groups
            here = [group for group, where in behind.items() if where == number]
            heaviest = max(here, key=lambda group: weights[group], default=None)
            if heaviest is not None:
                names = _names([one.tenant for one in made.loads.tenants.get(heaviest, ())])
                told += f": group {heaviest} alone is {weights[heaviest]:.1%} ({names})"
            yield told


def _names(tenants: list[str]) -> str:
    """Some tenants by name, and how many more there are."""
    more = len(tenants) - MOST_NAMES
    return plain(", ".join(tenants[:MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
