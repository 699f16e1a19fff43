"""``belfry replay --with``: the effect of other policies, or of other time zone data.

Both sides play the same requests on a virtual clock. Policies are values, so both sides are in this
process, request by request. Time zone data belongs to a process as a whole, so the other side is
then a process of its own: this command with `--events`, and with that data first on its path.

    this process     as it was ────────────────────────────┬─► Contrast ─► what is shown
    the other one    as it would be ─ a line for each event ┘
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any

import orjson

from belfry.cli.failures import CommandError
from belfry.cli.replay_run import VirtualSide, played_virtually
from belfry.cli.replay_shown import contrast_lines, contrast_shown
from belfry.cli.replay_world import ReplayWorld
from belfry.cli.session import Session
from belfry.cli.shown import Tell, plain
from belfry.playback.contrast import Contrast
from belfry.playback.virtual import VirtualEvent
from belfry.schedules.instants import format_instant

if TYPE_CHECKING:
    from belfry.tenants.policy import TenantPolicy

Policies = Mapping[str, "TenantPolicy"]


def show_events(
    session: Session, world: ReplayWorld, chosen: Sequence[int], until_ms: int, policies: Policies
) -> None:
    """Print each event that fires on the virtual clock, and each partition at its end."""
    with session.printer.several() as tell:
        for partition in chosen:
            _show_events_of(tell, world, partition, until_ms, policies)


def _show_events_of(
    tell: Tell, world: ReplayWorld, partition: int, until_ms: int, policies: Policies
) -> None:
    """Print the events of one partition, and its end."""

    def told(event: VirtualEvent) -> None:
        name = f"{event.tenant}/{event.schedule_id}"
        at = format_instant(event.fired_ms)
        record = {
            "partition": partition,
            "tenant": event.tenant,
            "schedule_id": event.schedule_id,
            "scheduled_at": event.scheduled_at,
            "occurrence": event.occurrence,
            "fired_at": at,
            "fired_ms": event.fired_ms,
            "fire_id": event.identity.decode(),
        }
        tell(record, plain(f"{at}  {name}  due {event.scheduled_at}"))

    side = VirtualSide(policies, told)
    requests, [refused] = played_virtually(world, partition, until_ms, [side])
    end = {"partition": partition, "requests": requests, "refused": refused}
    tell(end, f"partition {partition}: {requests:,} requests played.")


def show_other(
    session: Session, world: ReplayWorld, chosen: Sequence[int], until_ms: int, policies: Policies
) -> None:
    """Play partitions under both policies, and print what differs, tenant by tenant."""
    results: list[Contrast] = []
    requests = 0
    for partition in chosen:
        contrast = Contrast()
        sides = [VirtualSide({}, contrast.was), VirtualSide(policies, contrast.would)]
        count, refused = played_virtually(world, partition, until_ms, sides)
        contrast.end(*refused)
        requests += count
        results.append(contrast)
    _show(session, results, requests, until_ms)


def show_other_zones(
    session: Session, world: ReplayWorld, chosen: Sequence[int], until_ms: int, other: OtherZones
) -> None:
    """Play partitions here and in a process with the other time zone data; print what differs."""
    results: list[Contrast] = []
    requests = 0
    with other.events(session, chosen, until_ms) as lines:
        for partition in chosen:
            contrast = Contrast()
            side = VirtualSide({}, contrast.was)
            count, [refused] = played_virtually(world, partition, until_ms, [side])
            would_refuse: Counter[str] = Counter()
            for each in lines:
                if "refused" in each:
                    would_refuse.update(each["refused"])
                    break
                contrast.would(_event(each))
            contrast.end(refused, would_refuse)
            requests += count
            results.append(contrast)
    _show(session, results, requests, until_ms)


class OtherZones:
    """Time zone data in a folder, as `pip install --target` puts a release of tzdata there.

    With a file, its policies hold in the other process as well.
    """

    def __init__(self, folder: Path, policies: Path | None) -> None:
        self._folder = folder.resolve()
        self._policies = [] if policies is None else ["--with", str(policies)]

    @contextmanager
    def events(
        self, session: Session, chosen: Sequence[int], until_ms: int
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """The lines that the other process prints; the process is ended at the end.

        Raises `CommandError` where it fails.
        """
        parts = [part for each in chosen for part in ("--partition", str(each))]
        command = [sys.executable, "-m", "belfry.cli", "replay", "--events", "-o", "jsonl"]
        command += ["--until", format_instant(until_ms), *parts, *self._policies]
        path = [str(self._folder), *(each for each in sys.path if each)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        with Popen([*command, *session.as_options()], stdout=PIPE, env=environment) as process:
            assert process.stdout is not None
            try:
                yield map(orjson.loads, process.stdout)
            except BaseException:
                process.kill()
                raise
            process.wait()
            if process.returncode:
                raise CommandError("The playback with the other time zone data has failed.")


def _event(record: Mapping[str, Any]) -> VirtualEvent:
    return VirtualEvent(
        record["fire_id"].encode(),
        record["tenant"],
        record["schedule_id"],
        record["scheduled_at"],
        record["occurrence"],
        record["fired_ms"],
    )


# -- what is shown ---------------------------------------------------------------------------------


def _show(session: Session, results: Iterable[Contrast], requests: int, until_ms: int) -> None:
    tenants = [item for contrast in results for item in sorted(contrast.tenants.items())]
    differing = [(name, each) for name, each in tenants if each.differs]
    same = len(tenants) - len(differing)
    text = [
        f"{requests:,} requests played up to {format_instant(until_ms)}, as it was and as it would"
        " be:" + (" nothing would have been otherwise." if not differing else ""),
        *(text for name, each in differing for text in contrast_lines(name, each)),
    ]
    if differing and same:
        text.append(f"{same:,} other tenants: the same events at the same instants.")
    told = [{"tenant": name, **contrast_shown(each)} for name, each in tenants]
    record = {"until": format_instant(until_ms), "requests": requests, "tenants": told}
    session.printer.one(record, "\n".join(text))
