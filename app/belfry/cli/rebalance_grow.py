"""``belfry rebalance grow``: more partitions for a belfry that runs.

    look at workers and topics ─► show, ask ─► belfry.homes ─► belfry.changelog, and wait for the
    workers to see it ─► belfry.schedules, and wait until each partition has an owner

Nothing moves by that: new partitions are empty, and `belfry rebalance apply` has groups lie there.
Each step that was done is left out when the command is given again, so one that was interrupted
goes on from there. A forbidden step is refused with a code, before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.failures import CommandError, Exit, ask_to_begin
from belfry.cli.rebalance_moves import PATH
from belfry.cli.remote import Remote
from belfry.cli.shown import amount, plain

if TYPE_CHECKING:
    from belfry.cli.rebalance_options import GrowDry, GrowLimit, GrowTo, Yes
    from belfry.cli.session import Session
    from belfry.kafka.growth import Growth

LIMIT_S: Final = 120.0
PAUSE_S: Final = 0.5
SET: Final = "set BELFRY_KEY_GROUP_MOVES=true on all workers, and restart them one by one"
AGAIN: Final = "Give the command again: it goes on from there."


class GrowthRefused(CommandError):
    """Growth is refused; the code stands in front of the reason."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}", Exit.CONFLICT)
        self.code = code


def grow(session: Session, *, to: GrowTo, limit: GrowLimit, yes: Yes, dry: GrowDry) -> None:
    """Carry the command out; `limit` are seconds for workers to follow each step."""
    from belfry.kafka.growth import CannotGrow, growth_of, topic_counts

    remote, (_, admin) = Remote(session), session.admin()
    cluster = session.settings.cluster
    try:
        growth = growth_of(cluster, topic_counts(admin), to)
    except CannotGrow as error:
        raise GrowthRefused(error.code, str(error)) from None
    refuse(remote.get(PATH), growth)
    prefix = cluster.topic_prefix
    told: dict[str, Any] = {
        "homes": growth.homes,
        "partitions": to,
        "steps": [{"topic": prefix + kind, "from": n, "to": m} for kind, n, m in growth.steps],
    }
    lines = [f"  {each['topic']}  {each['from']} -> {each['to']}" for each in told["steps"]]
    what = f"{amount(growth.homes, 'home')} as before, {to} partitions"
    if dry:
        session.printer.one(told | {"done": False}, "\n".join([f"would be: {what}", *lines]))
        return
    if growth.steps and not yes:
        session.printer.note("\n".join(lines))
        ask_to_begin(f"Add partitions ({what})? They cannot be removed again.")
    _carry_out(session, remote, growth, LIMIT_S if limit is None else limit)
    session.printer.one(told | {"done": True}, f"{what}; each has an owner")


def refuse(found: Mapping[str, Any], growth: Growth) -> None:
    """Raise `GrowthRefused` where workers, by the answer of `/v1/key-groups`, stand against it."""
    if found["refusing"]:
        names = plain(", ".join(found["refusing"]))
        raise GrowthRefused("moves_not_allowed", f"Key groups may not move, say {names}: {SET}.")
    if len(found["releases"]) > 1 or not found.get("homes"):
        releases = plain(", ".join(found["releases"]))
        raise GrowthRefused(
            "mixed_releases",
            f"The workers are of these releases: {releases}. One that does not know of growth would"
            " look for schedules where they are not: grow once all are of one that does.",
        )
    if found["homes"] != growth.homes:
        raise GrowthRefused(
            "other_belfry",
            f"The worker says that there are {found['homes']} homes, and the topics say"
            f" {growth.homes}: it is of another belfry (BELFRY_HTTP_URL, BELFRY_BOOTSTRAP_SERVERS,"
            " BELFRY_CLUSTER__TOPIC_PREFIX).",
        )
    unknown = [each for each in found["missing"] if each < growth.homes]
    if found["silent"] or unknown:
        names = plain(", ".join(found["silent"]))
        who = f"workers do not answer: {names}" if names else f"nobody tells of {unknown}"
        raise GrowthRefused("workers_silent", f"Not all is known ({who}): try again.")


def _carry_out(session: Session, remote: Remote, growth: Growth, limit_s: float) -> None:
    from belfry.kafka import growth as topics

    _, admin = session.admin()
    topic, cluster = session.settings.topic, session.settings.cluster
    left = {kind for kind, _, _ in growth.steps}
    if "homes" in left:
        topics.keep_homes(admin, cluster, growth.homes)
    if topics.STATE in left:
        topics.add_partitions(admin, topic(topics.STATE), growth.partitions)
    say = session.printer.note

    def all_know(found: Mapping[str, Any]) -> str:
        refuse(found, growth)
        known = found["partitions"]
        return "" if known >= growth.partitions else f"a worker knows of {known} partitions"

    def all_owned(found: Mapping[str, Any]) -> str:
        missing = found["missing"] or found["silent"]
        return f"nobody tells of {missing}" if missing else all_know(found)

    if left:
        say("Waiting until all workers know of the partitions …")
    _wait(remote, all_know, limit_s)
    if topics.REQUESTS in left:
        topics.add_partitions(admin, topic(topics.REQUESTS), growth.partitions)
        say("Waiting until each partition has an owner …")
    _wait(remote, all_owned, limit_s)


def _wait(remote: Remote, why_not: Callable[[Mapping[str, Any]], str], limit_s: float) -> None:
    """Wait until no reason speaks against it; raises `CommandError` with the last one."""
    deadline = monotonic() + limit_s
    while why := _said(remote, why_not):
        if monotonic() > deadline:
            raise CommandError(f"After {limit_s:g} s {why}. {AGAIN}")
        sleep(PAUSE_S)


def _said(remote: Remote, why_not: Callable[[Mapping[str, Any]], str]) -> str:
    """The reason against it now; a worker that does not answer, or is silent, may do so soon."""
    try:
        return why_not(remote.get(PATH))
    except GrowthRefused as error:
        if error.code != "workers_silent":
            raise
        return str(error)
    except CommandError as error:
        return str(error)
