"""The reference page of the command line, made from the commands themselves.

``python -m belfry.cli.reference > docs/cli.md`` writes it; a test compares the two.

The docstring of a command is its help and its section on the page. A paragraph that begins with
``belfry`` is an example, and becomes a block of code. Options that every command takes stand once,
at the begin. So a change of an option is made in one place, its annotation:

    def get(session, tenant: Tenant) -> None:        ## belfry schedule get
        docstring of `get`                     ─►    usage, help, and a table of its own options
    Tenant = Annotated[str, typer.Argument(…)]       | `TENANT` | The tenant. |

No command runs: each is only asked for its parameters, as its help page asks for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import typer

from belfry.cli.help import EVERYWHERE, sections
from belfry.cli.program import program

if TYPE_CHECKING:
    from typer._click import Context

# Facts of all commands: exit codes, output forms, where settings come from, instants.
INTRODUCTION: Final = """\
# The command line

<!-- Made by `python -m belfry.cli.reference > docs/cli.md`: change the commands, not this page. -->

```console
$ belfry dev                                  # Kafka, a schema registry and a worker, here
$ belfry schedule create demo hello --in 10s --payload 'hello, belfry'
ACCEPTED demo/hello, version 1, due 2026-12-01T09:00:00.000Z (in 9s)
$ belfry events tail demo --from-beginning --max 1
2026-12-01T09:00:00.000Z  hello #0  hello, belfry
```

Requests go through Kafka and wait for their outcome, which is the verdict of a worker; `--no-wait`
returns as soon as Kafka has the request. A request that got no verdict in time is not lost: it is
carried out when a worker takes it in, and asking again with the same `--request-id` is safe for an
hour: the answer is DUPLICATE, with the exit code of the first answer.  Another request with that id
is a CONFLICT (exit code 4).

## What is printed

Results go to stdout, everything else to stderr. `--output json` prints one JSON document (an array
where there may be several results, complete even if it is interrupted), `--output jsonl` one object
a line as it comes. Names are those of the Avro schemas, instants are RFC 3339 in UTC. Bytes appear
as `…_text`, and as `…_json` too where they are a JSON object or array, otherwise as `…_base64`.
A refusal (exit codes 3, 4, and 1 with a code) prints its verdict in these forms as well.

| exit code | meaning |
|---|---|
| 0 | ok |
| 1 | error: not reachable, no outcome in time, rejected, or a check that found problems |
| 2 | usage: an option or a setting is wrong; nothing was written |
| 3 | not found: there is no such schedule |
| 4 | conflict: it exists, has another version, or has fired already |

## Where settings come from

Options win over `BELFRY_*` variables, and these over `belfry.toml` in the working directory (or the
file that `BELFRY_CONFIG_FILE` names). `-X sasl.username=me` and `BELFRY_KAFKA__SASL_USERNAME=me`
say the same; `BELFRY_CLUSTER__TOPIC_PREFIX` leads to a belfry whose topics do not begin with
`belfry.`. A name that no process of belfry knows is refused with the nearest one, exit code 2
([settings.md](settings.md#names-that-nobody-knows)).

## Instants and durations

An instant is RFC 3339 with its offset (`2026-12-01T09:00:00Z`, `2026-12-01T10:00:00.250+01:00`) or
epoch milliseconds (`1796115600000`). A local time without an offset is refused. A duration is
`250ms`, `30s`, `5m`, `1h30m`, `1.5d`, `2w`, ISO 8601 (`PT5M`, `P1DT2H`) or plain milliseconds.
`--timeout` alone takes plain numbers as seconds. A fraction of a millisecond is rounded up: nothing
fires early.
"""


def reference() -> str:
    """The whole page, as Markdown that ends with a line break.

    Commands come in the order of the help page, which is that of `program`.
    """
    root: Any = typer.main.get_command(program())
    context = root.make_context("belfry", [], resilient_parsing=True)
    blocks = [
        INTRODUCTION,
        "## Options of every command\n",
        _table(sections(root, context)[EVERYWHERE]),
    ]
    blocks += _commands(root, context)
    return "\n".join(block.rstrip("\n") + "\n" for block in blocks)


def _commands(group: Any, context: Context) -> Iterator[str]:
    """Pages of all commands below a group, in the order of the help."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        # A group has no section of its own; its commands follow one another.
        if hasattr(command, "list_commands"):
            yield from _commands(command, inner)
        else:
            yield from _page(command, inner)


def _page(command: Any, context: Context) -> Iterator[str]:
    """The section of one command: its usage, its help, and a table of its own options.

    Options that every command takes, and ``--help``, are left out.
    """
    yield f"## {context.command_path}\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```\n{usage}\n```\n"
    for paragraph in (command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        yield f"```\n{text}\n```\n" if text.startswith("belfry ") else f"{text}\n"
    rows = [
        row
        for heading, found in sections(command, context).items()
        if heading != EVERYWHERE
        for row in found
        if "--help" not in row[0]
    ]
    if rows:
        yield _table(rows)


def _table(rows: list[tuple[str, str]]) -> str:
    """A table of two columns without headings, as Markdown."""
    lines = [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in rows]
    return "\n".join(["| | |", "|---|---|", *lines]) + "\n"


def _cell(text: str) -> str:
    """Text in one line that does not end its cell."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
