"""A misrouted request on its way: the record that is sent to another partition, or why none is.

A request that came in on a partition that is not its home goes on with the position of its first
arrival, so that its home counts it from there, and with how many homes have been asked:

    first arrival ─► another partition ─► … ─► its home, where the verdict falls
         origin           origin, asked            counted from the first arrival

Where two workers go by different policies it could go round for ever, so how often it begins its
way anew is counted, and refused at the end.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.claims import claimed
from belfry.engine.effects import Rerouted
from belfry.engine.reply import Reply
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.step import Step
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.wire.moves import HANDED_ON
from belfry.wire.origins import vouched
from belfry.wire.record import (
    ORIGIN_TENANT,
    RETRIES,
    Origin,
    SourceRecord,
    carried_on,
    has_hopped,
    origin_headers,
    retries_of,
    sent_by_headers,
    size_of,
    stamp_of,
)

# A record that comes to its home may be a little larger, and only there: brokers take 1 MiB unless
# the topic says otherwise, and a record that is sent on has some headers more.
MAX_MISROUTED_BYTES: Final = 1_000_000
# How often a request begins its way anew.  Workers learn of a policy within two seconds, and a hop
# takes some milliseconds at least.
MAX_RETRIES: Final = 1_000


class Rerouting:
    """Sends requests on from one partition to the homes of their tenants."""

    def __init__(self, place: SourcePartition, reports: Reports) -> None:
        self._place = place
        self._reports = reports

    def send(
        self,
        record: SourceRecord,
        request: Request | None,
        stop: tuple[int, int],
        step: Step,
        *,
        handed_on: bool = False,
    ) -> Reply | None:
        """Send a request on, to a `stop` as `sent_on` has it; the reply where it is refused.

        `handed_on`: its home sends it to where its key group lies.
        """
        place = self._place
        number = 0 if place.only_forwards else step.number
        came = self._reports.origin(record), self._reports.asked(record), number
        sent = sent_on(record, request, stop, came, place, handed_on=handed_on)
        if isinstance(sent, Rejection):
            return self._reports.reject(record, request, sent, step)
        step.effects.rerouted.append(sent)
        step.effects.room -= size_of(record)
        return None


def sent_on(
    record: SourceRecord,
    request: Request | None,
    stop: tuple[int, int],
    came: tuple[Origin, int, int],
    place: SourcePartition,
    *,
    handed_on: bool = False,
) -> Rerouted | Rejection:
    """The record of a request that is sent on from a place, or why it is refused instead.

    `request` is None where it cannot be read here.  `stop` is the partition that it goes to, and
    how many homes have been asked then; `came` is where it first arrived, how many had been asked
    when it came here, and the number of the transaction that sends it on (0: none is known).
    """
    first, asked_before, number = came
    home, asked = stop
    headers, stamp = record[4], stamp_of(record[4])
    # A request that begins its way anew has met partitions whose owners go by different policies.
    again = not asked or asked == asked_before
    retries = retries_of(record) + (again and has_hopped(headers))
    if retries > MAX_RETRIES:
        return _misrouted(_named(record, request), first, place.partition, home)
    size = size_of(record)
    if size > MAX_MISROUTED_BYTES:
        return too_large(size, handed_on=handed_on)
    _, _, key, value, _ = record
    carried = carried_on(headers)
    carried += origin_headers(first, asked if asked or stamp is not None else None)
    carried += sent_by_headers(place.partition, number)
    if stamp is not None:
        carried.append((ORIGIN_TENANT, stamp.encode()))
    if handed_on:
        carried.append((HANDED_ON, b"1"))
    if retries:
        carried.append((RETRIES, b"%d" % retries))
    carried = vouched(place.origin_keys, key, value, carried)
    return Rerouted(home, key, value, carried)


def too_large(size: int, *, handed_on: bool) -> Rejection:
    """Why a request of this size is not sent on, or does not wait to be (`handed_on`)."""
    if handed_on:
        reason = (
            f"The request takes {size} bytes; {MAX_MISROUTED_BYTES} can be sent on to the partition"
            " where its tenant's key group lies (docs/rebalance.md). Store its content elsewhere"
            " and schedule the address (claim check)."
        )
    else:
        reason = (
            f"The request takes {size} bytes; {MAX_MISROUTED_BYTES} can be re-routed to its"
            " home partition. Write it with key = tenant and the murmur2 partitioner, or store"
            " its content elsewhere and schedule the address (claim check)."
        )
    return Rejection("request_too_large", reason)


def _named(record: SourceRecord, request: Request | None) -> str:
    """The tenant of a request; where it cannot be read, the one that it shows."""
    return claimed(record).decode(errors="replace") if request is None else request["tenant"]


def _misrouted(tenant: str, origin: Origin, here: int, home: int) -> Rejection:
    reason = (
        f"The request came in on {origin.topic}/{origin.partition} and was sent on {MAX_RETRIES}"
        f" times; partition {here} takes partition {home} for the owner, and that one does not. The"
        f" workers go by different policies of tenant {tenant} (spread, former_spreads), or some"
        " cannot read the policies: their logs and `belfry doctor` tell. Nothing was done; send the"
        " request again when they agree."
    )
    return Rejection("misrouted", reason)
