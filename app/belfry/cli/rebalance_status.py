"""The output of `belfry rebalance status`, and the ends of moves: lines for people.

    2 of 4,096 key groups are away from home or on their way, of which 1 rests

    group  home  lies  goes  state      records  waiting
     1912     0     1     -  rests            0        0
     2461     1     1     2  moving         120       14

    2461: its rows leave; it goes on by itself …

A group that rests away from its home needs nothing. For the others a line says what is going on,
and what to do where it does not end by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.rebalance_moves import numbers
from belfry.cli.shown import amount, plain

if TYPE_CHECKING:
    from belfry.cli.rebalance_moves import MoveOutcome

# So many ended moves are shown to people.
MOST_ENDED: Final = 10
_WHAT: Final[Mapping[str, str]] = {
    "asked": "its target has not answered yet. It does as soon as it has an owner that lets key"
    " groups move; `belfry rebalance call-off {group}` calls it off.",
    "moving": "its rows leave, and requests of its tenants wait at partition {home}. It goes on by"
    " itself; where it does not, look whether partition {lies} has an owner.",
    "arriving": "its rows come in. It goes on by itself; where it does not, look whether partition"
    " {lies} has an owner, and whether its owner has refused a record of the move:"
    " `belfry rebalance resend {group}` sends those again.",
    "releasing": "it is there, and requests that have waited are sent on.",
}


def status_lines(found: dict[str, Any]) -> list[str]:
    """How key groups stand, by the answer of `/v1/key-groups`."""
    return [*_workers(found), *_table(found), *_ended(found)]


def _workers(found: dict[str, Any]) -> Iterator[str]:
    if found["allowed"]:
        yield "key groups may move"
    else:
        names = plain(", ".join(found["refusing"]))
        yield f"key groups may not move, say {names} (BELFRY_KEY_GROUP_MOVES)"
    if len(found["releases"]) > 1:
        releases = plain(", ".join(found["releases"]))
        yield f"workers are of several releases, so none may move now: {releases}"
    for name in found["silent"]:
        yield f"{plain(name)} does not answer"
    if found["missing"]:
        yield f"nobody tells of partitions {numbers(found['missing'])}"


def _table(found: dict[str, Any]) -> Iterator[str]:
    listed = found["key_groups"]
    if not listed:
        yield f"all {found['groups']} key groups are at home, as far as workers tell"
        return
    resting = sum(each["state"] == "rests" for each in listed)
    whose = f"{len(listed):,} of {found['groups']:,} key groups are away from home or on their way"
    yield f"{whose}, of which {resting:,} rest" + ("s" if resting == 1 else "")
    yield ""
    yield " group  home  lies  goes  state       records  waiting"
    for each in listed:
        goes = "-" if each["goes"] is None else each["goes"]
        yield (
            f"{each['group']:>6} {each['home']:>5} {each['lies']:>5} {goes:>5}"
            f"  {each['state']:<10} {each['records']:>8} {each['waiting']:>8}"
        )
    told = [f"{each['group']}: {on_its_way(each)}" for each in listed if each["state"] in _WHAT]
    yield from ["", *told] if told else []


def on_its_way(each: Mapping[str, Any]) -> str:
    """The progress of a group that does not rest, and what to do if it does not end."""
    said = _WHAT.get(each["state"], "a later release has it so: see its `belfry rebalance status`")
    return said.format(**each)


def _ended(found: dict[str, Any]) -> Iterator[str]:
    stayed = [each for each in found["ended"] if each["why"] is not None][-MOST_ENDED:]
    if stayed:
        yield ""
        yield f"{amount(len(stayed), 'move')} came to nothing:"
    for each in stayed:
        yield f"  {each['group']}  {each['source']} -> {each['target']}  {plain(each['why'])}"


def outcome_json(each: MoveOutcome) -> dict[str, Any]:
    """The end of a move, for programs."""
    group, source, target = each.wanted
    return {"group": group, "from": source, "to": target, "why": each.why}


def outcome_line(each: MoveOutcome) -> str:
    """Why a group has not moved, for people."""
    group, source, target = each.wanted
    return f"  {group}  {source} -> {target}  stays: {plain(each.why or '')}"
