"""``belfry rebalance``: how even the partitions are, and what would have to move.

A tenant lives on one partition, found by hashing its name. A few large ones may share theirs by
chance, while other partitions idle. `plan` shows what each partition carries, and which tenants
would have to move for an even load, over as many partitions or over others:

    partition   pending    fires/s   share        then
            0   120,400      310.0   71.0 %    39.0 %
            1     8,100       20.5    9.0 %    31.0 %  …

    to move: 2 of 4096 groups, 32.0 % of the load
      group 1684   0 -> 1   30.0 %   shop

`plan` only looks. `apply` carries it out, some groups at a time, and waits for each of them; `move`
does so with the groups of some tenants. `status` shows which groups are not at home, and what to do
where one does not arrive. `grow` adds partitions for groups to lie in. The groups and the plan are
made by `belfry.placement`, which is pure. `call-off` and `resend`, for a group that does not
arrive, are in `belfry.cli.rebalance_stuck`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import typer

from belfry.cli import rebalance_stuck
from belfry.cli.failures import CommandError, WrongUse, ask_to_begin
from belfry.cli.help import Program
from belfry.cli.progress import progress_of
from belfry.cli.rebalance_moves import (
    PATH,
    MoveOutcome,
    Mover,
    WantedMove,
    all_told,
    homes_in,
    numbers,
    stands,
)
from belfry.cli.rebalance_options import (
    Carrying,
    GrowDry,
    GrowLimit,
    GrowTo,
    Most,
    Planning,
    Tenants,
    To,
    Yes,
)
from belfry.cli.rebalance_shown import lines, planned_of, shown
from belfry.cli.rebalance_status import outcome_json, outcome_line, status_lines
from belfry.cli.remote import Remote, WorkerRefusal, tenant_path
from belfry.cli.session import Session, with_session
from belfry.cli.shown import amount
from belfry.schedules.request import tenant_problem

if TYPE_CHECKING:
    from belfry.cli.rebalance_shown import Plan

# Seconds between two looks, and until a group is to have arrived.
OVER_S: Final = 10.0
LIMIT_S: Final = 60.0


def register(app: typer.Typer) -> None:
    """Add ``rebalance`` to the program."""
    group = Program()
    group.command("plan")(with_session(plan))
    group.command("apply")(with_session(apply))
    group.command("status")(with_session(status))
    group.command("move")(with_session(move))
    group.command("grow")(with_session(grow))
    group.command("call-off")(with_session(rebalance_stuck.call_off))
    group.command("resend")(with_session(rebalance_stuck.resend))
    app.add_typer(
        group,
        name="rebalance",
        help="How even partitions are, and moves of key groups: plan, apply, status.",
    )


def plan(session: Session, *, how: Planning) -> None:
    """Show what each partition carries, and which tenants would have to move for an even load.

    It only looks; `belfry rebalance apply` does it. Asks a worker over HTTP, and Kafka. Example:

    belfry rebalance plan --partitions 16 --by fires
    """
    made = _planned(session, how)
    session.printer.one(shown(made), "\n".join(lines(made)))


def apply(session: Session, *, how: Planning, carrying: Carrying, most: Most = None) -> None:
    """Move key groups until the load is even: shows the plan, asks, and waits for each group.

    Workers need BELFRY_KEY_GROUP_MOVES=true. Give an interrupted command again: it plans anew from
    where groups lie by then. Example:

    belfry rebalance apply --at-once 2
    """
    made = _planned(session, how)
    if not carrying.dry:
        all_told(made.measured.missing, made.measured.silent)
    chosen = sorted(made.moves, key=lambda each: -each.weight)[:most]
    session.printer.note("\n".join(lines(made)))
    wanted = [WantedMove(each.group, each.source, each.target) for each in chosen]
    waiting = sum(made.loads.by_group[each.group].pending for each in chosen if each.weight)
    _carry_out(session, wanted, f"{waiting:,.0f} schedules", carrying)


def move(session: Session, tenants: Tenants, *, to: To, carrying: Carrying) -> None:
    """Move the key groups of some tenants to a partition; others of a group come along.

    Workers need BELFRY_KEY_GROUP_MOVES=true. Example:

    belfry rebalance move shop --to 3
    """
    from belfry.placement.key_groups import KeyGroups

    for tenant in tenants:
        wrong = tenant_problem(tenant)
        if wrong is not None:
            raise WrongUse(wrong.reason)
    remote = Remote(session)
    for tenant in tenants:
        _in_one_partition(remote, tenant)
    found = remote.get(PATH)
    all_told(found["missing"], found["silent"])
    groups = KeyGroups(homes_in(found))
    wanted = []
    for group in dict.fromkeys(groups.of(tenant) for tenant in tenants):
        lies = stands(found, group)[1]
        if lies != to:
            wanted.append(WantedMove(group, lies, to))
    _carry_out(session, wanted, ", ".join(tenants), carrying)


def grow(
    session: Session,
    *,
    partitions: GrowTo,
    limit: GrowLimit = None,
    yes: Yes = False,
    dry: GrowDry = False,
) -> None:
    """Add partitions that hold schedules, while all goes on; the number of homes stays.

    Nothing moves by it: `belfry rebalance apply` has groups lie in them. Needs a worker, and the
    right to create and alter topics. Workers need BELFRY_KEY_GROUP_MOVES=true. Example:

    belfry rebalance grow --partitions 16
    """
    from belfry.cli import rebalance_grow

    rebalance_grow.grow(session, to=partitions, limit=limit, yes=yes, dry=dry)


def status(session: Session) -> None:
    """Show which key groups are not at home, which are on their way, and what to do about them.

    Example:

    belfry rebalance status
    """
    found = Remote(session).get(PATH)
    session.printer.one(found, "\n".join(status_lines(found)))


def _in_one_partition(remote: Remote, tenant: str) -> None:
    """Refuse to move a tenant that is spread, or was.

    Its schedules stay where they are, so its group would move without it. Raises `CommandError`.
    """
    try:
        policy = remote.get(tenant_path(tenant))
    except WorkerRefusal as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return
        raise
    if policy["spread"] != 1 or policy["former_spreads"]:
        raise CommandError(
            f"Tenant {tenant} is spread, or was, so no key group has its schedules: they stay where"
            " they are. Nothing was moved."
        )


def _planned(session: Session, how: Planning) -> Plan:
    """The measured loads, and the plan for them."""
    from belfry.cli.rebalance_loads import measured

    over_s = OVER_S if how.over is None else how.over
    if over_s:
        session.printer.note(f"Counting fires for {over_s:g} s …")
    found = measured(session, over_s)
    for name in found.silent:
        session.printer.note(f"{name} does not answer: what it owns is missing.")
    if found.missing:
        session.printer.note(
            f"Nobody tells of partitions {numbers(found.missing)}: what they carry is missing."
        )
    return planned_of(found, how.partitions or found.partitions, how.within, how.by)


def _carry_out(session: Session, wanted: list[WantedMove], what: str, how: Carrying) -> None:
    """Show how many would move, ask, move them, and show what became of them."""
    groups = amount(len(wanted), "key group")
    if how.dry or not wanted:
        told = {"moves": [outcome_json(MoveOutcome(each, None)) for each in wanted], "moved": 0}
        session.printer.one(told, f"{groups} would move ({what})")
        return
    if not how.yes:
        ask_to_begin(f"Move {groups} ({what})?")
    with progress_of(session.printer) as tell:
        mover = Mover(Remote(session), how.at_once, LIMIT_S if how.limit is None else how.limit)
        done = mover.carry_out(wanted, tell)
    stayed = [each for each in done if each.why is not None]
    moved = len(done) - len(stayed)
    told = {"moves": [outcome_json(each) for each in done], "moved": moved}
    text = [f"{moved} of {groups} moved", *(outcome_line(each) for each in stayed)]
    session.printer.one(told, "\n".join(text))
    if stayed:
        raise CommandError(f"{amount(len(stayed), 'key group')} stayed where they lay.")
