"""`belfry redrive` by Kafka's rights: where another redrive has begun, it waits and goes on.

All redrives of a belfry have one transactional id, so one that begins ends the one before:

    12:00:00  this command sends                300 are sent and marked
    12:00:03  another redrive begins            this one is ended, and waits for 12 seconds
    12:00:15  this command begins once more     counts anew, and sends the 200 that have no mark

Sent requests are marked, so none is sent twice, and both redrives come to an end.  A redrive of a
worker sends for ten seconds and leaves the rest to a next call, so it has ended by then.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from belfry.cli.redrive_http import LONGEST_WAIT_S, WAITS_S

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.client.redrive_source import RedriveCount

WAIT_S: Final = WAITS_S["another_redrive"]
Told = Callable[[int], None]


def sent_in_turn(
    session: Session, found: RedriveCount, send: Callable[[Told], RedriveCount]
) -> RedriveCount:
    """Send the counted records, in as many turns as others leave; the count of sent ones.

    `found` is the count that was shown.  `send` takes a callback for each transaction, and returns
    the records that it had to send when it began. Raises `AnotherRedrive` if nothing could be sent
    for `LONGEST_WAIT_S` seconds.
    """
    from belfry.client.redrive_source import AnotherRedrive

    until_s, waited = monotonic() + LONGEST_WAIT_S, False

    def told(_sent: int) -> None:
        nonlocal until_s
        until_s = monotonic() + LONGEST_WAIT_S

    while True:
        try:
            done = send(told)
        except AnotherRedrive:
            if monotonic() + WAIT_S > until_s:
                raise
            session.printer.note("Another redrive has begun: waiting for it.")
            waited = True
            sleep(WAIT_S)
        else:
            # After a wait, records that were sent before it are marked, and the last count lacks
            # them.
            return found if waited else done
