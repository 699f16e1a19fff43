"""``belfry rebalance call-off`` and ``resend``: for a key group that does not arrive.

    the target does not answer             call-off   the group stays, and nothing waits for it
    the target has refused rows of it      resend     they are written again, as they were signed

Which of the two it is says `belfry rebalance status`. Neither goes by half of the truth: while
nobody tells of a partition, it is not known whether a group that shows nowhere is at home.
"""

from __future__ import annotations

from belfry.cli.failures import CommandError, ask_to_begin
from belfry.cli.rebalance_moves import PATH, all_told, stands
from belfry.cli.rebalance_options import GroupNumber, Yes
from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import amount


def call_off(session: Session, group: GroupNumber) -> None:
    """Call off a move whose target has not answered; a move that is under way goes on.

    Example:

    belfry rebalance call-off 1912
    """
    remote = Remote(session)
    found = remote.get(PATH)
    state, lies = stands(found, group)
    if state == "rests":
        all_told(found["missing"], found["silent"])
        raise CommandError(f"Key group {group} rests in partition {lies}: no move to call off.")
    if state != "asked":
        raise CommandError(
            f"Key group {group} is on its way ({state}): some of it has left, so it goes on by"
            " itself. Move it back when it rests."
        )
    told = remote.ask("POST", f"{PATH}/{group}/move", {"target": lies})
    session.printer.one(told, f"The move of key group {group} was called off; it lies in {lies}.")


def resend(session: Session, group: GroupNumber, *, yes: Yes = False) -> None:
    """Send rows of a key group again that its target has refused, so that the group arrives.

    They lie in belfry.rejected. Needs Kafka besides a worker. Example:

    belfry rebalance resend 1912
    """
    from belfry.client.refused_rows import CutRows, refused_rows, send_again

    found = Remote(session).get(PATH)
    standing = next((each for each in found["key_groups"] if each["group"] == group), None)
    if standing is None or standing["state"] not in ("arriving", "moving"):
        all_told(found["missing"], found["silent"])
        raise CommandError(f"Key group {group} is not on its way: there is nothing to send again.")
    topic, cluster = session.settings.topic, session.cluster()
    try:
        rows = refused_rows(cluster, topic("rejected"), group, standing["move"])
    except CutRows as error:
        raise CommandError(str(error)) from None
    if not rows:
        raise CommandError(
            f"Nothing was refused of the rows of key group {group}, as far as {topic('rejected')}"
            " goes back."
        )
    if not yes:
        ask_to_begin(f"Send {amount(len(rows), 'record')} of key group {group} again?")
    send_again(cluster, topic("schedules"), rows)
    told = {"group": group, "move": standing["move"], "records": len(rows)}
    session.printer.one(told, f"{amount(len(rows), 'record')} were sent again")
