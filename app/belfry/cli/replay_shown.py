"""Lines of `belfry replay` on a played partition, and on the effect of other policies.

People get a line for each partition or tenant, with examples below, programs the same in fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from belfry.cli.shown import plain
from belfry.schedules.instants import format_duration, format_instant

if TYPE_CHECKING:
    from belfry.cli.replay_run import PartitionPlayed
    from belfry.playback.comparing import StepDifference
    from belfry.playback.contrast import MovedEvent, TenantContrast


def shown(result: PartitionPlayed) -> dict[str, Any]:
    """A partition that was played, for programs."""
    counts = result.counts
    found = result.differs
    doubted = found is not None and bool(found.doubt)
    return {
        "partition": result.partition,
        "same": None if doubted else found is None,
        "transactions": counts.steps,
        "requests": counts.requests,
        "fires": counts.fires,
        "rows": counts.rows,
        "events_compared": result.events,
        "owners": counts.owners,
        "rows_compacted": counts.owed,
        "difference": None if found is None or doubted else _difference(found),
        "not_judged": None if found is None or not doubted else _not_judged(result, found),
    }


def _difference(found: StepDifference) -> dict[str, Any]:
    return {name: value for name, value in found._asdict().items() if name != "doubt"}


def _not_judged(result: PartitionPlayed, found: StepDifference) -> dict[str, Any]:
    """From which transaction on a partition cannot be judged, and why."""
    return {
        "transaction": found.transaction,
        "offset": found.offset,
        "transactions": result.unjudged,
        "reason": found.doubt,
    }


def line(result: PartitionPlayed) -> str:
    """A partition that was played, for people."""
    counts, found = result.counts, result.differs
    head = (
        f"partition {result.partition}: {counts.steps:,} transactions of {counts.owners:,} owners,"
        f" {counts.requests:,} requests, {counts.fires:,} fires, {counts.rows:,} rows,"
        f" {result.events:,} events compared"
    )
    if found is None:
        return f"{head}: the same bytes."
    if found.doubt:
        some = f"{result.unjudged:,} of {counts.steps + result.unjudged:,}"
        return plain(
            f"{head}: the same bytes up to transaction {found.transaction}, offset {found.offset}"
            f" of the changelog. From there on {some} transactions CANNOT BE JUDGED: {found.doubt}."
        )
    place = f"transaction {found.transaction}, offset {found.offset} of the changelog"
    return plain(
        f"{head}: DIFFERS in {place}, {found.what} {found.name}: there is {found.logged}; played:"
        f" {found.played}"
    )


def contrast_shown(found: TenantContrast) -> dict[str, Any]:
    """The differences of a tenant, for programs."""
    return {**asdict(found), "examples": [_moved(each) for each in found.examples]}


def _moved(event: MovedEvent) -> dict[str, Any]:
    instants = ("fired_at", event.was_ms), ("would_fire_at", event.would_ms)
    shown_instants = {name: None if ms is None else format_instant(ms) for name, ms in instants}
    named = {"schedule_id": event.schedule_id, "scheduled_at": event.scheduled_at}
    return {**named, **shown_instants}


def contrast_lines(name: str, found: TenantContrast) -> Iterator[str]:
    """The differences of a tenant, for people."""
    parts = [f"{found.fires:,} fires, {found.would_fire:,} would be"]
    if found.later:
        most = format_duration(found.most_later_ms)
        parts.append(f"{found.later:,} later, by {most} at most")
    for count, what in (
        (found.earlier, "earlier"),
        (found.missing, "not by then"),
        (found.new, "that did not fire"),
    ):
        parts += [f"{count:,} {what}"] if count else []
    if found.refused != found.would_refuse:
        parts.append(f"{found.refused:,} requests refused, {found.would_refuse:,} would be")
    yield plain(f"{name}: {'; '.join(parts)}")
    for each in found.examples:
        was = "did not fire" if each.was_ms is None else format_instant(each.was_ms)
        would = "not by then" if each.would_ms is None else format_instant(each.would_ms)
        yield plain(f"  {each.schedule_id}, due {each.scheduled_at}: {was} → {would}")
