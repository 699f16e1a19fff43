"""Key groups that move, as workers tell of them: which do not go on, and who does not allow moves.

A move takes tenths of a second mostly.  So where a group is on its way it is looked at again after
some seconds: one that has not gone on by then waits for something, and its events with it.

    12:00:00   group 1912 moving, 120 records      12:00:03   arriving, 400 records    it goes on
    12:00:00   group 1684 arriving, 0 records      12:00:03   arriving, 0 records      it does not
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from time import sleep
from typing import Any, Final

from belfry.cli.check import Check, Status
from belfry.cli.failures import CommandError
from belfry.cli.rebalance_moves import PATH
from belfry.cli.rebalance_status import on_its_way
from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import amount, partitions_text, plain

NAME: Final = "key groups"
AGAIN_S: Final = 3.0
# Groups that are told of.
MOST: Final = 20
SET: Final = "set BELFRY_KEY_GROUP_MOVES alike on all workers, and restart them one by one"


def move_checks(session: Session) -> Iterator[Check]:
    """What is wrong with key groups; one line that all is well where some have moved."""
    remote = Remote(session)
    try:
        found = remote.get(PATH)
        later = found
        if under_way(found):
            sleep(AGAIN_S)
            later = remote.get(PATH)
        told = remote.get("/v1/cluster") if found["refusing"] else {"members": []}
    except CommandError as error:
        yield Check(NAME, Status.SKIPPED, f"The worker does not tell of key groups: {error}")
        return
    yield from judge(found, later, {each["worker_id"] for each in told["members"]})


def under_way(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The key groups of an answer that do not rest."""
    return [each for each in found["key_groups"] if each["state"] != "rests"]


def judge(
    found: dict[str, Any], later: dict[str, Any], workers: Collection[str]
) -> Iterator[Check]:
    """What two answers mean that lie some seconds apart; `workers` are all of the group."""
    told = [*_mixed(found, workers), *_stuck(found, later)]
    yield from told
    away = [each for each in later["key_groups"] if each["lies"] != each["home"]]
    if not told and later["key_groups"]:
        moving = len(under_way(later))
        detail = f"{amount(len(away), 'key group')} away from home, {moving} on the way, going on."
        yield Check(NAME, Status.OK, detail)


def _mixed(found: dict[str, Any], workers: Collection[str]) -> Iterator[Check]:
    """Some workers allow moves, and others do not."""
    refusing = sorted(set(found["refusing"]))
    allowing = sorted(set(workers) - set(refusing) - set(found["silent"]))
    if refusing and allowing:
        detail = (
            f"{plain(', '.join(allowing))} let key groups move, and {plain(', '.join(refusing))} do"
            " not: none can be moved, and what is on its way may have to stay."
        )
        yield Check(NAME, Status.RISK, detail, SET)


def _stuck(found: dict[str, Any], later: dict[str, Any]) -> Iterator[Check]:
    """Groups whose rows, and requests that wait, are the same at both looks."""
    stuck = [each for each in under_way(later) if each in found["key_groups"]]
    unknown = sorted({*later["missing"]})
    for each in stuck[:MOST]:
        where = f"from {each['lies']} to {each['goes']}"
        if each["goes"] is None:
            where = f"to {each['lies']}"
        detail = (
            f"Key group {each['group']} is on its way {where} ({each['state']}) and has not gone on"
            f" for {AGAIN_S:g} s"
        )
        # A target that was asked for has nothing of the group yet, and nothing waits for it.
        asked = each["state"] == "asked"
        detail += "." if asked else ": its events wait, and so do its requests."
        if unknown:
            detail += f" Nobody tells of {partitions_text(unknown)}."
        status = Status.RISK if asked else Status.PROBLEM
        yield Check(NAME, status, detail, on_its_way(each))
    if len(stuck) > MOST:
        further = amount(len(stuck) - MOST, "further key group")
        detail = f"{further} have not gone on either."
        yield Check(NAME, Status.PROBLEM, detail, "belfry rebalance status shows all of them")
