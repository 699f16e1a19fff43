"""``belfry api-key``: a new key for HTTP and the entry that lets it in, and how keys are used.

A key is 256 random bits. Workers keep its SHA-256 alone, in a list that their setting
BELFRY_HTTP_API_KEYS_FILE names, so a list that leaks opens nothing.

    belfry api-key new orders --tenant orders --role schedule
    key    …        goes to the caller, who sends it as ``Authorization: Bearer …``
    entry  {…}      goes into the list of the workers

`new` needs neither Kafka nor a worker. `list` asks one worker, and that one asks the others for
their counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.help import HelpGroup, Program
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain

if TYPE_CHECKING:
    from typer._click import Context


class KeyRole(StrEnum):
    """What the bearer may do; each includes those before it.

    `read` looks at schedules, `schedule` writes them, `admin` sets policies of its tenants, and
    `operate` is for what concerns the cluster, such as the list of keys.
    """

    READ = "read"
    SCHEDULE = "schedule"
    ADMIN = "admin"
    OPERATE = "operate"


# The name of a tenant, or the beginning of one with a star.
OPENED: Final = re.compile(r"[A-Za-z0-9_.-]{0,100}\*|[A-Za-z0-9_.-]{1,100}")
# Above the lines of a list.
KEYS: Final = "key, name, role, tenants, until when, and how it was used"
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Whose key it is, for logs.", show_default=False)
]
Tenants = Annotated[
    list[str],
    typer.Option(
        "--tenant",
        metavar="TENANT",
        help="Tenant that it opens; a * at the end stands for the rest of a name; repeatable.",
        show_default=False,
    ),
]
GivenRole = Annotated[KeyRole, typer.Option("--role", help="What its holder may do.")]


class _WithNew(HelpGroup):
    """A group whose command may be left out: `belfry api-key orders` means `api-key new orders`.

    A key named "list" or "new" has to be made by `api-key new list`.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Add the command if none is named."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["new", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add ``api-key`` with its commands to the program."""
    group = Program()
    group.command("new")(with_session(new))
    group.command("list")(with_session(list_))
    app.add_typer(
        group, name="api-key", cls=_WithNew, help="Keys for the HTTP port: a new one, or a list."
    )


def list_(session: Session) -> None:
    """List the API keys of the workers: when each ends, and when it was used last.

    Asks a worker (--http-url, with a key of the role operate for all tenants), which asks the
    others. Uses count since the workers started. No key is shown: the first column is the beginning
    of its SHA-256, as the list has it.
    """
    from belfry.cli.remote import Remote

    found = Remote(session).get("/v1/keys")
    for name in found["silent"]:
        session.printer.note(f"Worker {name} did not answer: its uses are missing.")
    told = ((each, key_text(each, found["workers"])) for each in found["keys"])
    session.printer.listed(told, KEYS, "The workers have no list of API keys.")


def key_text(key: Mapping[str, Any], workers: int) -> str:
    """A key in a line for people; `workers` are those that answered.

    The line is safe for a terminal: names come from a file, and addresses from callers. A key that
    some workers do not know is marked, since their lists differ from the others'.
    """
    last, end = key["last_used_at"], key["expires_at"]
    used = f"used {key['uses']} times, last {last} from {key['last_used_from']}" if last else ""
    parts = [
        f"{key['id']}  {key['name']}  {key['role']}  {','.join(key['tenants'])}",
        f"{key['state']} until {end}" if end else "valid",
        used or "not used since the workers started",
        f"refused {key['refused']} times after its end" if key["refused"] else "",
        f"known to {key['workers']} of {workers} workers" if key["workers"] != workers else "",
    ]
    return plain("  ".join(each for each in parts if each))


def new(session: Session, name: Name, *, tenant: Tenants, role: GivenRole = KeyRole.READ) -> None:
    """Make a key for the HTTP port, and the entry to be added to its list.

    Nothing is stored: give the key to the caller, and put the entry into the JSON list of
    BELFRY_HTTP_API_KEYS_FILE, which workers read again when it changes. Example:

    belfry api-key new orders --tenant orders --role schedule
    """
    from belfry.api.auth.keys import digest, new_key

    for each in tenant:
        if not OPENED.fullmatch(each):
            raise WrongUse(
                f"--tenant {each[:100]!r} can be no tenant: give a name, such as payments, the"
                " beginning of some, such as payments.*, or * for all of them."
            )
    key = new_key()
    entry = {"name": name, "sha256": digest(key), "tenants": tenant, "role": str(role)}
    text = f"key    {key}\nentry  {_json(entry)}"
    session.printer.one({"key": key, "entry": entry}, text)


def _json(entry: Mapping[str, object]) -> str:
    """The entry as one line of JSON, to be pasted into the list."""
    import orjson

    return orjson.dumps(entry).decode()
