"""Both sides of a mirror as commands reach them, and how a partition of one is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli import log_lines
from belfry.cli.failures import CommandError, WrongUse
from belfry.cli.session import Session

if TYPE_CHECKING:
    from belfry.mirror.looking import LaneStatus
    from belfry.mirror.sides import Side

SourceHosts = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="HOSTS",
        help="Kafka brokers of the cluster that is followed.  [default: BELFRY_MIRROR_SOURCE]",
    ),
]
# A line of a report, for programs and for people.
Told = tuple[dict[str, Any], str]


@contextmanager
def told() -> Iterator[None]:
    """Within it, an error of a mirror becomes an error of the command."""
    from belfry.mirror.beginnings import CannotMirror
    from belfry.recovery.partition_evidence import CannotRecover

    log_lines.to_stderr()
    try:
        yield
    except (CannotMirror, CannotRecover) as error:
        raise CommandError(str(error)) from None
    except BrokenPipeError:
        # The reader of the output has gone, not a broker.
        raise
    except ConnectionError as error:
        raise CommandError(
            f"A cluster does not answer: {error}. Give brokers that run: those of the source by"
            " --source, those of the target by --bootstrap-servers."
        ) from None


def servers(session: Session, source: str | None) -> str | None:
    """The brokers of the source, by option or setting; None if neither names them."""
    return source or session.settings.mirror_source


def reachable(session: Session, source: str | None) -> Side | None:
    """The source, or None where it does not answer, which is said."""
    try:
        return _source(session, source)
    except ConnectionError as error:
        session.printer.note(f"how far behind this is, is not known: {error}")
        return None


def _source(session: Session, source: str | None) -> Side:
    from belfry.mirror.sides import opened, source_settings

    settings, hosts = session.settings, servers(session, source)
    if hosts is None:
        raise WrongUse(
            "Which cluster is followed? Name its brokers with --source kafka-a:9092, or set"
            " BELFRY_MIRROR_SOURCE."
        )
    given = settings.mirror_source_kafka
    properties = settings.kafka if given is None else given
    return opened("source", source_settings(settings, hosts, properties))


def both(session: Session, source: str | None, *, taken_over: bool = False) -> tuple[Side, Side]:
    """Source and target, of which one may follow the other; raises `CannotMirror` else.

    With `taken_over` it may have done so, and the target may have grown since.
    """
    from belfry.mirror.sides import opened, pair

    theirs, mine = _source(session, source), opened("target", session.settings)
    pair(theirs, mine, taken_over=taken_over)
    return theirs, mine


def now_ms() -> int:
    """Epoch milliseconds by the clock of this machine."""
    return int(time() * 1000)


def line(partition: int | None, what: str, told: str) -> Told:
    """A line about a partition, or about all of them."""
    text = f"partition {partition:<4} {what:9} {told}" if partition is not None else told
    return {"partition": partition, "what": what, "detail": told}, text


def status_line(found: LaneStatus, at_ms: int) -> Told:
    """A partition's status, in a line for people."""
    mark = found.mark
    if mark is None:
        return line(found.partition, "alone", "follows nobody")
    if found.given is not None:
        return line(
            found.partition,
            "given",
            f"belongs to cluster {found.given}, which took over; `belfry mirror run` follows it",
        )
    behind_s = max(0, at_ms - mark.level_ms) / 1000 if found.behind != 0 else 0.0
    age = f"{behind_s:.1f} s" if mark.level_ms else "all the time"
    what = "active" if mark.activated else "leaving" if mark.leaving else "follows"
    behind = "an unknown number of" if found.behind is None else str(found.behind)
    record = {
        "partition": found.partition, "what": what, "source": mark.source, "epoch": mark.epoch,
        "whole": mark.whole, "positions": mark.positions, "behind_records": found.behind,
        "behind_seconds": behind_s,
    }  # fmt: skip
    told = f"{behind} records, {age} behind cluster {mark.source}"
    if mark.activated:
        told = f"took over from cluster {mark.source}, epoch {mark.epoch}"
    whole = "" if mark.whole else "; not carried as a whole yet"
    return record, f"partition {found.partition:<4} {what:9} {told}{whole}"
