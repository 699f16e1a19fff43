"""The program: all commands under one name, with the options that stand before them."""

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
    plan,
    recover,
    redrive,
    schedule,
    slo,
    tenant,
    top,
    topics,
    verify,
    worker,
)
from belfry.cli.help import Program
from belfry.cli.session import root_options

EPILOG: Final = (
    "Settings come from options, then from variables (BELFRY_BOOTSTRAP_SERVERS, BELFRY_HTTP_URL,"
    " BELFRY_SCHEMA_REGISTRY_URL, BELFRY_KAFKA__<PROPERTY>), then from belfry.toml. Exit codes:"
    " 0 ok, 1 error, 2 usage, 3 not found, 4 conflict."
)


def program() -> typer.Typer:
    """The command line as a whole."""
    app = Program(name="belfry", epilog=EPILOG)
    app.callback()(root_options(belfry))
    for commands in (
        *(dev, worker, schedule, bulk, backfill, redrive, calendar, events, deliveries, tenant),
        *(apply, topics, doctor, audit, verify, slo, top, backup, recover, api_key, acls),
        *(config, bench, plan, mcp),
    ):
        commands.register(app)
    return app


def _version(wanted: bool) -> None:
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
