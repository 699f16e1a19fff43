"""``belfry tenant usage``: the usage of tenants, hour by hour, as the metering topic has it.

Each worker counts the work of its partitions for each tenant, and writes the counts when the hour
is over. This command reads the topic, adds up the counts of all partitions for the same tenant and
hour, and prints them. It is meant for bills: work that a crash repeats is not counted twice
(docs/metering.md).

    accepted, fired, delivered   events of this hour
    byte-hours                   bytes held, times the hours for which they were held

    a schedule of 1 000 bytes waits from 09:15 to 10:45
    the hour from 09:00          750 byte-hours
    the hour from 10:00          750 byte-hours
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import CommandError, Exit
from belfry.cli.options import ago
from belfry.cli.session import Session
from belfry.cli.shown import instant_json, plain

if TYPE_CHECKING:
    from belfry.wire.metering import Usage

# As it is typed: the help shows it as the default.
DAY: Final = "24h"
# The setting to name if nothing is metered.
SWITCH: Final = "BELFRY_METERING_INTERVAL_MS=3600000 on all workers"
# Milliseconds.
HOUR_MS: Final = 3_600_000


Metered = Annotated[
    str | None, typer.Argument(metavar="TENANT", help="The tenant; all unless given.")
]
Since = Annotated[
    int,
    typer.Option(
        "--since",
        parser=ago,
        metavar="WHEN",
        help="Hours that begin then or later: 2h, 7d, or an instant in RFC 3339.",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until",
        parser=ago,
        metavar="WHEN",
        help="Hours that end by then.  [default: all that are over]",
    ),
]


def usage(
    session: Session,
    tenant: Metered = None,
    *,
    since: Since = DAY,  # type: ignore[assignment]  # typer parses it
    until: Until = None,
) -> None:
    """Show the usage of a tenant in each hour: accepted, fired, delivered, byte-hours held.

    Workers count it where BELFRY_METERING_INTERVAL_MS is set, and tell of an hour when it is over.
    Reads a topic and needs no worker. Example:

    belfry tenant usage payments --since 7d -o jsonl
    """
    from belfry.client.errors import MissingTopic
    from belfry.client.usage import UsageSpan, read_usage

    topic = session.settings.topic("metering")
    asked = UsageSpan(tenant, since, int(time() * 1000) if until is None else until)
    try:
        found = read_usage(session.cluster(), topic, asked)
    except MissingTopic:
        raise CommandError(
            f"Nothing is metered: there is no topic {topic}. Set {SWITCH}, and ask again when an"
            " hour is over.",
            Exit.NOT_FOUND,
        ) from None
    none = "Nothing was used in hours that are over."
    session.printer.listed(((shown(each), line(each)) for each in found), HEADING, none)


def shown(usage: Usage) -> dict[str, Any]:
    """A period for programs.

    `held_byte_ms` is the exact number that `held_byte_hours` comes from. Instants are RFC 3339 in
    UTC.
    """
    return {
        "tenant": usage.tenant,
        "from": instant_json(usage.from_ms),
        "until": instant_json(usage.until_ms),
        "accepted": usage.accepted,
        "fired": usage.fired,
        "delivered": usage.delivered,
        "held_byte_ms": usage.held_byte_ms,
        "held_byte_hours": usage.held_byte_hours,
    }


HEADING: Final = (
    f"{'from':24}  {'tenant':20}  {'accepted':>12}  {'fired':>12}  {'delivered':>12}"
    f"  {'byte-hours':>16}"
)


def line(usage: Usage) -> str:
    """A period in a line for people; counts have separators, and names are made harmless for a
    terminal.
    """
    counts = (usage.accepted, usage.fired, usage.delivered)
    told = "  ".join(f"{each:>12,}" for each in counts)
    held = usage.held_byte_hours
    return f"{instant_json(usage.from_ms):24}  {plain(usage.tenant):20}  {told}  {held:>16,.1f}"
