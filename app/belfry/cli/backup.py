"""``belfry backup`` and ``restore``: all that waits and all policies, in one file.

The way to another cluster, and to another number of partitions. A backup reads topics and needs no
worker. A restore reads the whole file before it writes anything; then it writes policies and
requests like any other, so that workers judge them.

    old cluster                              new cluster
    12:00  workers stop
    12:01  belfry backup belfry.jsonl
    12:05                                    workers start, with nothing in their topics
    12:06                                    belfry restore belfry.jsonl
             12:06:00  count and check every line of the file
             12:06:04  write the policies of tenants that have none
             12:06:07  create schedules, each with its remaining occurrences

Both belfries must not run with the same schedules, for each of them would fire. Repeat an
interrupted restore with the same command: it finds schedules that it has created before, and leaves
them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from hashlib import blake2b, file_digest
from itertools import islice
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.changelog import judges
from belfry.cli.day_files import whole
from belfry.cli.failures import DISK, Exit, WrongUse
from belfry.cli.policies import kafka_policies
from belfry.cli.portability import TIMEOUT_S, OutcomesTimeout, create_all
from belfry.cli.session import Session, with_session
from belfry.host.private_files import OWN_FILE

if TYPE_CHECKING:
    from belfry.tenants.policy import TenantPolicy
    from belfry.wire.quick_writing import Ready

STDOUT: Final = "-"
# Lines that are written at once.
TOGETHER: Final = 1_000
# Workers follow the topic of policies, which are in effect within two seconds.
IN_EFFECT_S: Final = 3.0

Target = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A new file (-: standard output).", show_default=False),
]
Source = Annotated[
    Path, typer.Argument(metavar="FILE", help="What a backup wrote.", show_default=False)
]

Cancelled = Annotated[
    bool,
    typer.Option(
        "--cancelled", help="Also restore schedules that were cancelled since the backup."
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``backup`` and ``restore`` to the program."""
    app.command("backup")(with_session(backup))
    app.command("restore")(with_session(restore))


def backup(session: Session, file: Target) -> None:
    """Write every schedule that waits and every tenant's policy, as JSON lines.

    Needs no worker, and disturbs none. The file gets its name when it is complete. Example:

    belfry backup belfry.jsonl
    """
    from belfry.client.backup import Written
    from belfry.client.export import waiting_records
    from belfry.client.portable_lines import line_of
    from belfry.schedules.instants import format_instant

    settings = session.settings
    records = waiting_records(
        session.cluster(),
        settings.topic("changelog"),
        settings.topic("client"),
        judges=judges(session),
    )
    head = {
        "topic_prefix": settings.cluster.topic_prefix,
        "taken_at": format_instant(int(time() * 1000)),
    }
    told = session.printer.counted(map(line_of, whole(session, records)), "schedules written")
    lines = Written(head, kafka_policies(session).all().values(), told)
    if str(file) == STDOUT:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
        return
    _write(file, lines)
    held = lines.held
    session.printer.one(
        {"file": str(file), **held._asdict()},
        f"{file}: {held.schedules} schedules, {held.policies} policies",
    )


def restore(
    session: Session, file: Source, *, timeout: OutcomesTimeout = None, cancelled: Cancelled = False
) -> int:
    """Write the policies of a backup and create its schedules; each goes on where it stood.

    Says of each schedule what it did: made; left, because it lives, has fired since, or was
    cancelled since; conflict, because another of its name lives (exit code 4); refused (exit code
    1). May be repeated. Stop the old belfry before, or both fire. Example:

    belfry restore belfry.jsonl
    """
    from belfry.client.backup import checked, taken_at

    with _opened(file) as lines:
        held = checked(session.printer.counted(lines, "lines checked"))
    with _opened(file) as lines:
        since_ms = None if cancelled else taken_at(lines)
    kept = _restore_policies(session, held.policies)
    code: int = Exit.OK
    if held.counts.schedules:
        code = create_all(session, _schedules(file), timeout or TIMEOUT_S, since_ms)
    else:
        session.printer.many(())
    # A refused schedule weighs more than a policy that was kept.
    return code or (Exit.CONFLICT if kept else Exit.OK)


def _restore_policies(session: Session, wanted: list[TenantPolicy]) -> list[str]:
    """Write the policies of tenants that have none; the names of those that have another.

    A policy that is there stays: somebody has set it for this cluster. After a write the command
    waits `IN_EFFECT_S` seconds, so that workers judge the first schedules by their tenants'
    policies.
    """
    if not wanted:
        return []
    policies = kafka_policies(session)
    there = policies.all()
    new = [each for each in wanted if each.tenant not in there]
    kept = [each.tenant for each in wanted if there.get(each.tenant, each) != each]
    if new:
        # A tenant that shared a topic then shares it again.
        policies.put(*new, share_topic=True)
        sleep(IN_EFFECT_S)
    others = f"; left as they are: {', '.join(kept)}" if kept else ""
    session.printer.note(f"{len(wanted)} policies: {len(new)} written{others}")
    return kept


def _write(file: Path, lines: Iterable[bytes]) -> None:
    """A file that gets its name when it is complete and on the disk, as it was written.

    What lies there is read again, and has to be what was made. Raises `WrongUse` where the name is
    taken or cannot be made, and where the disk gives back something else, and OSError where it is
    full. A backup that failed leaves FILE.part behind, which the next one replaces.
    """
    part = file.with_name(file.name + ".part")
    if file.exists():
        raise WrongUse(f"{file} exists: give a new name, so that no backup is lost.")
    try:
        # It holds payloads and the headers of targets: for its user's eyes alone.
        part.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        made = blake2b()
        with os.fdopen(os.open(part, flags, OWN_FILE), "wb") as out:
            for some in _joined(lines):
                made.update(some)
                out.write(some)
            out.flush()
            os.fsync(out.fileno())
        with part.open("rb") as kept:
            if file_digest(kept, blake2b).digest() != made.digest():
                raise WrongUse(f"{part} does not hold what was written: look at its disk.")
        part.rename(file)
    except OSError as error:
        if error.errno in DISK:
            raise
        raise WrongUse(f"{part} cannot be written: {error.strerror}.") from None


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Some lines together."""
    left = iter(lines)
    while some := b"".join(islice(left, TOGETHER)):
        yield some


def _schedules(file: Path) -> Iterator[dict[str, Any] | Ready]:
    """The requests for the schedules of a backup, one after another."""
    from belfry.client.backup import read
    from belfry.tenants.policy import TenantPolicy

    with _opened(file) as lines:
        for part in read(lines):
            if not isinstance(part, TenantPolicy):
                yield part


def _opened(file: Path) -> Any:
    """The file, open for bytes; `WrongUse` says why it cannot be."""
    try:
        return file.open("rb")
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror}.") from None
