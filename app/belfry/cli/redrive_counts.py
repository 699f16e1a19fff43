"""The counts of `belfry redrive`: shown before, asked about, and shown again at the end.

A count is shown twice in the same words, with the question between the two:

    3 requests would be sent (bad_cron: 2, unknown_tenant: 1), 5 were redriven before
    Send 3 requests again? [y/N]: y
    3 requests were sent (bad_cron: 2, unknown_tenant: 1), 5 were redriven before

Requests are counted by the code of their refusal, events by their schedule. `stuck` are requests
that cannot be sent, since the rejected topic has not all of them, or since they came from no topic
of requests. They are told with the reason, so that nobody takes "3 were sent" for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from belfry.cli.failures import ask_to_begin
from belfry.cli.shown import plain

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.client.redrive_source import RedriveCount


def _fires_json(found: RedriveCount) -> dict[str, Any]:
    """A count of events for programs, with how many there are of each schedule."""
    return {
        "events": len(found.places),
        "schedules": dict(found.codes),
        "redriven": found.redriven,
    }


def _fires_text(found: RedriveCount, how: str) -> str:
    """A count of events for people; `how` is the verb phrase, such as ``would be sent``."""
    return f"{len(found.places)} events of {len(found.codes)} schedules {how}" + (
        f", {found.redriven} were redriven before" * bool(found.redriven)
    )


def _json(found: RedriveCount) -> dict[str, Any]:
    """A count of requests for programs: by code, those sent before, and those that cannot be
    sent.
    """
    return {
        "requests": len(found.places),
        "codes": dict(found.codes),
        "redriven": found.redriven,
        "stuck": dict(found.stuck),
    }


def _text(found: RedriveCount, how: str) -> str:
    """A count of requests for people."""
    codes = ", ".join(f"{plain(code)}: {count}" for code, count in sorted(found.codes.items()))
    stuck = ", ".join(f"{why}: {count}" for why, count in sorted(found.stuck.items()))
    return (
        f"{len(found.places)} requests {how}"
        + (f" ({codes})" * bool(codes))
        + (f", {found.redriven} were redriven before" * bool(found.redriven))
        + (f", {found.stuck.total()} cannot be ({stuck})" * bool(stuck))
    )


class Countable(NamedTuple):
    """A kind of record to send again: its name, and how a count of it is shown.

    `name` is a plural, such as ``requests``. `text` takes the count and a verb phrase, such as
    ``would be sent``.
    """

    name: str
    json: Callable[[RedriveCount], dict[str, Any]]
    text: Callable[[RedriveCount, str], str]


REQUESTS: Final = Countable("requests", _json, _text)
EVENTS: Final = Countable("events", _fires_json, _fires_text)


def goes_on(
    session: Session, what: Countable, found: RedriveCount, *, dry: bool, yes: bool
) -> bool:
    """Show the count; True if there is something to send and the person wants it sent.

    `what` says how a count is shown. With `dry` it prints the count as the result and ends there,
    and so it does for programs where there is nothing to send. With `yes` nobody is asked. Raises
    the error of `ask_to_begin` if the answer is no.
    """
    text = what.text(found, "would be sent")
    # People are told by the note; programs need a result.
    if dry or not (found.places or session.printer.for_people):
        session.printer.one(what.json(found), text)
        return False
    session.printer.note(text)
    if found.places and not yes:
        ask_to_begin(f"Send {len(found.places)} {what.name} again?")
    return bool(found.places)
