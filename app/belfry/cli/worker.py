"""``belfry worker``: one worker process.

The options are settings under shorter names; options that are not given come from variables and
from belfry.toml. The role decides which settings there are: a process that only delivers has no
settings of partitions. So the role is read first, without a look at other names, and then all
settings of its class.

The process itself is put together in `belfry.assembly`, and runs until a signal:

    SIGTERM ─► the running transactions end ─► partitions are given up ─► exit code 0

The exit code of a worker that cannot start, or that has to give up, is that of `run_worker`.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from belfry.cli.session import Session, with_session


class LogLevel(StrEnum):
    """Least severe level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """Form of log lines."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class WorkerRole(StrEnum):
    """What a worker does: fire schedules, deliver over HTTP, or both.

    A cluster may have workers of several roles; partitions go only to those that schedule.
    """

    ALL = "all"
    SCHEDULE = "schedule"
    DELIVER = "deliver"


RoleOption = Annotated[
    WorkerRole | None,
    typer.Option("--role", help="Fire schedules, deliver over HTTP, or both.  [default: all]"),
]
# Two workers never share one: the directory is locked while a worker runs in it.
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        file_okay=False,
        metavar="PATH",
        help="State of this worker, one directory per worker; safe to delete while it is stopped."
        "  [default: .belfry/worker]",
    ),
]
HttpHost = Annotated[
    str | None,
    typer.Option(
        "--http-host",
        metavar="ADDRESS",
        help="Address of the HTTP port.  [default: 127.0.0.1]",
    ),
]
HttpPort = Annotated[
    int | None,
    typer.Option(
        "--http-port",
        min=0,
        max=65535,
        metavar="PORT",
        help="HTTP port, 0 for any free one.  [default: 8700]",
    ),
]
# None stands for "not given", so that a variable or belfry.toml decides.
CreateTopics = Annotated[
    bool | None,
    typer.Option(
        "--create-topics/--no-create-topics",
        show_default=False,
        help="Create missing topics, or refuse to start with their list.  [default: create]",
    ),
]
Level = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="Least severe level that is written.  [default: info]"),
]
Format = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format", help="Form of log lines; auto looks at the terminal.  [default: auto]"
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``worker`` to the program."""
    app.command("worker")(with_session(worker))


def worker(
    session: Session,
    *,
    role: RoleOption = None,
    data_dir: DataDir = None,
    http_host: HttpHost = None,
    http_port: HttpPort = None,
    create_topics: CreateTopics = None,
    log_level: Level = None,
    log_format: Format = None,
) -> int:
    """Run one worker until it is stopped.

    Any number of workers, on any machines, share the work. SIGTERM and Ctrl-C stop it
    gracefully: it finishes its transactions, and others take over at once.
    """
    # Its modules take a second or more to import, and nothing is held or begun meanwhile. An
    # exception would not do: pydantic makes an error of its own of one amid a class that it builds.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from belfry.assembly import run_worker
    from belfry.settings import DeliverySettings, RoleSettings, Settings

    # First the role alone, for it says which other settings there are; then all of them.
    found = session.settings_of(RoleSettings, {"role": role}, all_names=False).role
    kind = DeliverySettings if found == WorkerRole.DELIVER.value else Settings
    options = {
        "role": role,
        "data_dir": data_dir,
        "http_host": http_host,
        "http_port": http_port,
        "create_topics": create_topics,
        "log_level": log_level,
        "log_format": log_format,
    }
    return run_worker(session.settings_of(kind, options))
