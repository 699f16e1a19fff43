"""The program: all commands under one name, with the options that stand before them.

Each module of a command has a function `register`, which adds it to the program:

    entry ─► program("schedule") ─► schedule.register         its commands are known
          ─► Typer parses, and finds `schedule create`
          ─► a Session is made ─► the command runs, and imports what it works with

The order here is that of the help page: what a beginner needs comes first. A command line that
begins with the name of a command loads the module of that command alone, which is a third of all
that its start takes. Any other line, such as ``--help``, loads all of them. Modules of commands
import little: what a command works with, such as Kafka's client, is imported when it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

import typer

from belfry import __version__
from belfry.cli.help import HelpGroup, Program
from belfry.cli.session import root_options

if TYPE_CHECKING:
    from typer._click import Context

# Last lines of the help page of the program itself.
EPILOG: Final = (
    "Settings come from options, then from variables (BELFRY_BOOTSTRAP_SERVERS, BELFRY_HTTP_URL,"
    " BELFRY_SCHEMA_REGISTRY_URL, BELFRY_KAFKA__<PROPERTY>), then from belfry.toml. Exit codes:"
    " 0 ok, 1 error, 2 usage, 3 not found, 4 conflict."
)


# Modules of this room that add commands.
MODULES: Final = (
    *("dev", "worker", "schedule", "events", "why", "bulk", "backfill", "redrive", "calendar"),
    *("deliveries", "tenant", "apply", "topics", "doctor", "audit", "verify", "replay", "slo"),
    *("top", "backup", "recover", "mirror", "api_key", "acls", "config", "bench", "plan"),
    *("rebalance", "payloads", "day_files", "mcp", "sql"),
)
# Where a command is that is not named as its module is.
ELSEWHERE: Final = {
    "api-key": "api_key",
    "day-files": "day_files",
    "diff": "apply",
    "restore": "backup",
    "schema": "topics",
}


class Beginning(HelpGroup):
    """The program itself, whose commands and groups come in the order of `MODULES`."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Typer's list has groups behind all commands."""
        return sorted(super().list_commands(ctx), key=_rank)


def _rank(name: str) -> int:
    """Where the module of a command stands."""
    module = ELSEWHERE.get(name, name)
    return MODULES.index(module) if module in MODULES else len(MODULES)


def program(first: str = "") -> typer.Typer:
    """The command line, made anew at each call: it has no state of a run.

    `first` is the first word that was typed. Where it names a command, only the commands of its
    module are known; otherwise all are, which is what help, the reference page and tests ask for.
    """
    app = Program(name="belfry", epilog=EPILOG, cls=Beginning)
    app.callback()(root_options(belfry))
    named = ELSEWHERE.get(first, first)
    for module in [named] if named in MODULES else MODULES:
        import_module(f"belfry.cli.{module}").register(app)
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
