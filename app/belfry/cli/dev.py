"""``belfry dev``: a broker, a schema registry and a worker with one command.

Everything starts, answers, and only then is announced: on the terminal and, for programs, in the
ready file. From then on all live or none: Ctrl-C, SIGTERM and a closed terminal stop the worker,
the registry and the broker in this order (exit code 0), and so does the death of any of them (exit
code 1).

    12:00:00  the ready file of an earlier run is removed
    12:00:00  Kafka starts, then the registry       (a first run downloads them before)
    12:00:04  both answer; the worker starts
    12:00:07  the worker is ready: the addresses are printed, the ready file is written
       ⋮      a look at all three processes, ten times a second
    12:30:00  Ctrl-C: worker, registry, Kafka; the data stay in --data-dir

How the three are started is told in `belfry.devstack`. This module is one thread without an event
loop.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer

from belfry.cli.failures import Exit
from belfry.cli.shown import tame
from belfry.devstack import DevStackError, Stack, StartCancelledError, open_stack
from belfry.devstack.artifacts import prepare
from belfry.devstack.child import StopSignals
from belfry.devstack.stack import StackPorts, Worker, moved_port

DEFAULT_KAFKA_PORT = 9092
# Seconds until a worker that does not get ready ends the command.
WORKER_TIMEOUT_S = 120.0
# Seconds between two looks at the processes.
WATCH_S = 0.1

Port = Annotated[
    int, typer.Option(min=0, max=65_535, metavar="PORT", help="A taken port moves on; 0: any.")
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="JSON file of addresses and pids, written when all answers."),
]


@dataclass(frozen=True)
class DevOptions:
    """What the command line asked for."""

    # Absolute; topics, schemas and the worker's state are in folders of it.
    data_dir: Path
    ports: StackPorts
    # Wanted port of the worker. A taken one moves on, and 0 takes any.
    http_port: int
    with_worker: bool
    # Where addresses and process ids go for programs, or None.
    ready_file: Path | None


def register(app: typer.Typer) -> None:
    """Add ``dev`` to the program; it takes no common options, for it makes the broker and the
    registry that these would name.
    """
    app.command("dev")(dev)


def dev(
    *,
    ready_file: ReadyFile = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Broker and registry only.")
    ] = False,
    data_dir: Annotated[
        Path, typer.Option(metavar="PATH", help="Topics, schemas and state; survives a restart.")
    ] = Path(".belfry/dev"),
    kafka_port: Port = DEFAULT_KAFKA_PORT,
    registry_port: Port = 8081,
    http_port: Port = 8700,
) -> None:
    """Run a Kafka broker, a schema registry and a worker here; Ctrl-C stops all of it."""
    ports = StackPorts(kafka_port, registry_port)
    options = DevOptions(data_dir.absolute(), ports, http_port, not no_worker, ready_file)
    try:
        # Still without our signal handling: a first download ends at once on Ctrl-C.
        prepare()
        complaint = _run(options)
    except DevStackError as failure:
        complaint = str(failure)
    if complaint:
        # Several lines where it ends with those of a log.
        typer.echo(tame(f"belfry: {complaint}"), err=True)
        raise typer.Exit(Exit.ERROR)


def _run(options: DevOptions) -> str | None:
    """Run until asked to stop (None) or until something dies (a sentence about it)."""
    if options.ready_file:
        options.ready_file.unlink(missing_ok=True)
    stop = StopSignals()
    with stop.listening():
        try:
            with _everything(options, stop.made) as (stack, worker):
                _announce(options, stack, worker)
                return _watch(stack, worker, stop.made)
        except StartCancelledError:
            return None


@contextmanager
def _everything(
    options: DevOptions, cancelled: Callable[[], bool]
) -> Iterator[tuple[Stack, Worker | None]]:
    """The running stack, and the ready worker where one is wanted.

    Leaving the context stops the worker first, then the stack. `cancelled` is asked again and again
    while things start; `StartCancelledError` ends the start where it says yes.
    """
    typer.echo(f"Starting Kafka and the schema registry in {options.data_dir} ...")
    with open_stack(options.data_dir, options.ports, say=typer.echo, cancelled=cancelled) as stack:
        if not options.with_worker:
            yield stack, None
            return
        worker = Worker(
            stack,
            options.data_dir / "worker",
            moved_port("HTTP", options.http_port, typer.echo),
        )
        try:
            worker.wait_ready(WORKER_TIMEOUT_S, cancelled)
            yield stack, worker
        finally:
            worker.stop()


def _watch(stack: Stack, worker: Worker | None, stop_requested: Callable[[], bool]) -> str | None:
    """Wait for a stop request; the death of a child ends the wait with a sentence."""
    children = [one for one in (worker, stack.registry, stack.kafka) if one]
    while not stop_requested():
        for child in children:
            if child.exit_code() is not None:
                return _obituary(child.name, child.pid, child.exit_code(), stack)
        time.sleep(WATCH_S)
    typer.echo("Stopping ...")
    return None


def _obituary(name: str, pid: int, code: int | None, stack: Stack) -> str:
    """A sentence about a process that ended by itself, with where to read why."""
    logs = {one.name: one.log_file for one in (stack.kafka, stack.registry)}
    where = f"Its log: {logs[name]}." if name in logs else "Its own output above says why."
    return f"The {name} (process {pid}) ended with exit code {code}; all else was stopped. {where}"


def _announce(options: DevOptions, stack: Stack, worker: Worker | None) -> None:
    """Tell people, then programs, that all answers."""
    for line in announcement(stack, worker):
        typer.echo(line)
    if options.ready_file:
        write_ready_file(options.ready_file, stack, worker)


def announcement(stack: Stack, worker: Worker | None) -> Iterator[str]:
    """Lines for the person at the terminal; what is to be pasted is one unbroken line."""
    yield ""
    yield f"  Kafka            {stack.bootstrap_servers}"
    yield f"  Schema registry  {stack.schema_registry_url}"
    if worker:
        yield ""
        yield "Schedule a first event and see it fire, in a second shell:"
        yield f"  {first_event_line(stack.kafka.port)}"
    yield ""
    yield "Ctrl-C stops all of it; the data stay."
    if worker:
        yield ""
        yield f"Open the console, whose button makes a first schedule:  {worker.http_url}"


def first_event_line(kafka_port: int) -> str:
    """A line to paste: schedules an event for in ten seconds and shows it fire.

    The usual port of Kafka need not be named, for it is the default of the settings.
    """
    belfry = belfry_command()
    where = (
        "" if kafka_port == DEFAULT_KAFKA_PORT else f" --bootstrap-servers 127.0.0.1:{kafka_port}"
    )
    return (
        f"{belfry} schedule create demo hello --in 10s --payload 'hello, belfry'{where}"
        f" && {belfry} events tail demo --max 1{where}"
    )


def belfry_command() -> str:
    """How a second shell in the same folder calls belfry.

    A command that is on PATH only because our own virtual environment is active counts as absent:
    the second shell need not have it activated.
    """
    own = Path(sys.executable).with_name("belfry")
    found = shutil.which("belfry")
    if found and Path(found).parent != own.parent:
        return "belfry"
    return _from_here(own) if own.exists() else f"{_from_here(Path(sys.executable))} -m belfry.cli"


def _from_here(path: Path) -> str:
    """A path as a shell in this folder takes it: relative where it is inside, and quoted."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def write_ready_file(path: Path, stack: Stack, worker: Worker | None) -> None:
    """Write the addresses and process ids; a reader sees the whole file or none.

    The content is written under another name and renamed. `http_url` and the worker's pid are null
    where no worker was asked for.
    """
    content = {
        "bootstrap_servers": stack.bootstrap_servers,
        "schema_registry_url": stack.schema_registry_url,
        "http_url": worker.http_url if worker else None,
        "pids": {
            "kafka": stack.kafka.pid,
            "registry": stack.registry.pid,
            "worker": worker.pid if worker else None,
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    partial.replace(path)
