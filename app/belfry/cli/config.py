"""``belfry config show``: the settings that a process would have here, and where each is from.

A setting may come from four places, and the one that wins is seldom the one that is looked at. So
each is shown with its value and its place:

    $ belfry config show -X client.id=probe
    setting            value          from
    bootstrap_servers  broker-1:9092  BELFRY_BOOTSTRAP_SERVERS
    kafka.client_id    **********     option

The worker, the process that only delivers and the commands have settings of their own, and read the
same variables and the same file; `--of` says whose are meant. No broker and no worker is asked: a
value that they would refuse is shown all the same, and `belfry doctor` looks for those. Values that
are secret, or may hold a secret, are hidden.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from belfry.cli.help import Program
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain


class Process(StrEnum):
    """Whose settings are meant."""

    WORKER = "worker"
    DELIVER = "deliver"
    COMMANDS = "commands"


Of = Annotated[
    Process,
    typer.Option(
        "--of", help="Whose settings: of a worker, of one that only delivers, or of commands."
    ),
]
Every = Annotated[bool, typer.Option("--all", help="Also those that have their defaults.")]
_SPACES: Final = 2


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    group = Program()
    group.command("show")(with_session(show))
    app.add_typer(group, name="config", help="Settings, and where they come from.")


def show(session: Session, *, of: Of = Process.WORKER, every: Every = False) -> None:
    """Show the settings that a process started here would have, and where each comes from.

    A value comes from an option, a variable or the file. Secrets are hidden, and so is what may
    hold one. Example:

    belfry config show --all
    """
    from belfry.settings import CommandSettings, DeliverySettings, Settings, SharedSettings
    from belfry.settings.origins import DEFAULT, origins
    from belfry.settings.sources import file_that_is_missing

    kinds: dict[Process, type[SharedSettings]] = {
        Process.WORKER: Settings,
        Process.DELIVER: DeliverySettings,
        Process.COMMANDS: CommandSettings,
    }
    kind = kinds[of]
    made = session.settings_of(kind, {})
    missing = file_that_is_missing()
    if missing:
        session.printer.note(missing)
    found = [each._asdict() for each in origins(made, session.options_of(kind))]
    told = [each for each in found if every or each["source"] != DEFAULT]
    if not told:
        session.printer.note("All settings are as by default; --all shows them.")
    rows = [_cells(each) for each in told]
    widths = [max(map(len, column)) for column in list(zip(_HEAD, *rows, strict=True))[:2]]
    if told:
        session.printer.note(_line(_HEAD, widths))
    session.printer.many((each, _line(row, widths)) for each, row in zip(told, rows, strict=True))


_HEAD: Final = ("setting", "value", "from")


def _cells(each: dict[str, Any]) -> tuple[str, str, str]:
    value = "-" if each["value"] is None else plain(str(each["value"]))
    return each["name"], value or '""', each["source"]


def _line(cells: tuple[str, str, str], widths: list[int]) -> str:
    name, value, source = cells
    return f"{name:{widths[0] + _SPACES}}{value:{widths[1] + _SPACES}}{source}"
