"""`belfry redrive` by way of a worker: it counts, and sends some seconds' worth with each call.

    POST …/redrives?dry=true    2 300 would be sent; a person says yes
    POST …/redrives             1 000 were sent, 1 300 are left
    POST …/redrives             1 000 were sent,   300 are left
    POST …/redrives               300 were sent,     0 are left

It is for people with a key and without rights in Kafka. Sent requests are marked, so the command
may be interrupted between two calls or amid one, and given again. If another redrive is at work,
the call is made once more after a while, and the command says so.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Final

from belfry.cli.failures import ask_to_begin
from belfry.cli.progress import Tell, progress_of
from belfry.cli.remote import Remote, WorkerRefusal, tenant_path
from belfry.cli.session import Session
from belfry.cli.shown import plain

EVERYBODY: Final = "*"
REJECTED: Final = "rejected"
# Seconds until a call is made once more that these codes refuse.  A slice takes ten: a caller that
# began one and ended ours has sent some by then, so both come to an end.
WAITS_S: Final = {"busy": 2.0, "another_redrive": 12.0}
# Seconds within which one call has to be answered otherwise.
LONGEST_WAIT_S: Final = 120.0


def redrive_by_http(
    session: Session, tenant: str, body: dict[str, Any], *, dry: bool, yes: bool
) -> None:
    """Show the count, ask, and have a worker send what it counted; `tenant` may be ``*``.

    Raises `CommandError` if the worker refuses, and if the person answers no.
    """
    remote = Remote(session)
    path = f"{'/v1' if tenant == EVERYBODY else tenant_path(tenant)}/redrives"
    asked = {name: value for name, value in body.items() if value is not None}
    counting, waits = f"{path}?dry=true", "Another redrive is at work: waiting for it."
    found = _answer(remote, counting, asked, lambda: session.printer.note(waits))
    text = _text(found, found["found"], "would be sent")
    if dry:
        session.printer.one(found, text)
        return
    session.printer.note(text)
    if not found["found"]:
        if not session.printer.for_people:
            session.printer.one({**found, "sent": 0, "left": 0}, text)
        return
    if not yes:
        ask_to_begin(f"Send {found['found']} {_what(found)} again?")
    with progress_of(session.printer) as tell:
        sent, left = _all_sent(remote, path, (asked, found), tell)
    text = _text(found, sent, "were sent") + f", {left} are left" * bool(left)
    session.printer.one({**found, "sent": sent, "left": left}, text)


def _all_sent(
    remote: Remote, path: str, begun: tuple[dict[str, Any], dict[str, Any]], tell: Tell
) -> tuple[int, int]:
    """Ask until nothing is left; how many were sent since the count, and how many are left.

    `begun` is the body of the call, and the count that was answered.
    """
    asked, found = begun
    sent, left, what = 0, found["found"], _what(found)

    def waits() -> None:
        tell(f"{what} sent, waiting for another redrive", sent, sent + left)

    while True:
        told = _answer(remote, path, asked, waits)
        # A call that another redrive has ended may have sent and marked requests that no answer
        # counts.
        sent, left = told["redriven"] - found["redriven"] + told["sent"], told["left"]
        tell(f"{what} sent", sent, sent + left)
        if not left or not told["sent"]:
            return sent, left


def _answer(
    remote: Remote, path: str, asked: dict[str, Any], waits: Callable[[], None]
) -> dict[str, Any]:
    """The worker's answer; `waits` is called before each wait for another redrive.

    Raises `CommandError`, also where others are at work for longer than `LONGEST_WAIT_S`.
    """
    until_s = monotonic() + LONGEST_WAIT_S
    while True:
        try:
            told: dict[str, Any] = remote.ask("POST", path, asked)
        except WorkerRefusal as refusal:
            wait_s = WAITS_S.get(refusal.code)
            if wait_s is None or monotonic() + wait_s > until_s:
                raise
            waits()
            sleep(wait_s)
        else:
            return told


def _what(found: dict[str, Any]) -> str:
    return "requests" if found["what"] == REJECTED else "events"


def _text(found: dict[str, Any], number: int, how: str) -> str:
    """A count in a sentence for people; `how` says what becomes or became of so many."""
    if found["what"] == REJECTED:
        by = ", ".join(f"{plain(name)}: {count}" for name, count in sorted(found["by"].items()))
        named = f"{number} requests {how}" + f" ({by})" * bool(by)
    else:
        named = f"{number} events of {found['kinds']} schedules {how}"
    stuck = ", ".join(f"{why}: {count}" for why, count in sorted(found["stuck"].items()))
    return (
        named
        + (f", {found['redriven']} were redriven before" * bool(found["redriven"]))
        + (f", {sum(found['stuck'].values())} cannot be ({stuck})" * bool(stuck))
    )
