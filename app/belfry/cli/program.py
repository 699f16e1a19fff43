"""The program: all commands under one name, with the options that stand before them.

Each module of a command has a function `register`, which adds it to the program:

    entry ─► program() ─► dev.register, worker.register, …     commands are known
          ─► Typer parses, and finds `schedule create`
          ─► a Session is made ─► the command runs, and imports what it works with

The order here is that of the help page: what a beginner needs comes first. Modules of commands
import little, so that building all of them takes a moment; what a command works with, such as
Kafka's client, is imported when it runs. A test sees that ``--help`` loads none of it.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from belfry import __version__
from belfry.cli import (
    acls,
    api_key,
    apply,
    audit,
    backfill,
    backup,
    bench,
    bulk,
    calendar,
    config,
    deliveries,
    dev,
    doctor,
    events,
    mcp,
    mirror,
    plan,
    rebalance,
    recover,
    redrive,
    replay,
    schedule,
    slo,
    sql,
    tenant,
    top,
    topics,
    verify,
    worker,
)
from belfry.cli.help import Program
from belfry.cli.session import root_options

# Last lines of the help page of the program itself.
EPILOG: Final = (
    "Settings come from options, then from variables (BELFRY_BOOTSTRAP_SERVERS, BELFRY_HTTP_URL,"
    " BELFRY_SCHEMA_REGISTRY_URL, BELFRY_KAFKA__<PROPERTY>), then from belfry.toml. Exit codes:"
    " 0 ok, 1 error, 2 usage, 3 not found, 4 conflict."
)


def program() -> typer.Typer:
    """The command line as a whole, made anew at each call.

    It has no state of a run, so tests and the reference page make their own.
    """
    app = Program(name="belfry", epilog=EPILOG)
    app.callback()(root_options(belfry))
    for commands in (
        *(dev, worker, schedule, bulk, backfill, redrive, calendar, events, deliveries, tenant),
        *(apply, topics, doctor, audit, verify, replay, slo, top, backup, recover, mirror),
        *(api_key, acls, config, bench, plan, rebalance, mcp, sql),
    ):
        commands.register(app)
    return app


def _version(wanted: bool) -> None:
    """Print the version and end, before anything else is parsed."""
    if wanted:
        print(f"belfry {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
]


def belfry(context: typer.Context, version: Version = False) -> None:
    """Schedule events with Kafka: exactly once, never early, milliseconds late.

    Start here: `belfry dev` runs all of it on this machine and shows a first line to paste.
    """
