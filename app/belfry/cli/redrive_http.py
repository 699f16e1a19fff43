"""`belfry redrive` by way of a worker: it counts, and sends some seconds' worth with each call.

    POST …/redrives?dry=true    2 300 would be sent; a person says yes
    POST …/redrives             1 000 were sent, 1 300 are left
    POST …/redrives             1 000 were sent,   300 are left
    POST …/redrives               300 were sent,     0 are left

It is for who has a key and no rights in Kafka.  What was sent is marked, so the command may be
interrupted between two calls or amid one, and given again.
"""

from __future__ import annotations

from typing import Any, Final

from belfry.cli.failures import ask_to_begin
from belfry.cli.progress import progress_of
from belfry.cli.remote import Remote, tenant_path
from belfry.cli.session import Session
from belfry.cli.shown import plain

EVERYBODY: Final = "*"
REJECTED: Final = "rejected"


def redrive_by_http(
    session: Session, tenant: str, body: dict[str, Any], *, dry: bool, yes: bool
) -> None:
    """Show the count, ask, and have a worker send what it counted; `tenant` may be ``*``.

    Raises `CommandError` for what the worker refuses, and for an answer of no.
    """
    remote = Remote(session)
    path = f"{'/v1' if tenant == EVERYBODY else tenant_path(tenant)}/redrives"
    asked = {name: value for name, value in body.items() if value is not None}
    found = remote.ask("POST", f"{path}?dry=true", asked)
    text = _text(found, found["found"], "would be sent")
    if dry:
        session.printer.one(found, text)
        return
    session.printer.note(text)
    if not found["found"]:
        return
    if not yes:
        ask_to_begin(f"Send {found['found']} {_what(found)} again?")
    sent = 0
    with progress_of(session.printer) as tell:
        while True:
            told = remote.ask("POST", path, asked)
            sent += told["sent"]
            tell(f"{_what(found)} sent", sent, sent + told["left"])
            if not told["left"] or not told["sent"]:
                break
    session.printer.one(
        {**found, "sent": sent, "left": told["left"]}, _text(found, sent, "were sent")
    )


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
