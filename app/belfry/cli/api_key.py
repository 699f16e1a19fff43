"""``belfry api-key``: a new key for HTTP, and the entry that lets it in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer

from belfry.cli.session import Session, with_session


class KeyRole(StrEnum):
    """What the bearer may do; each includes those before it."""

    READ = "read"
    SCHEDULE = "schedule"
    ADMIN = "admin"
    OPERATE = "operate"


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
GivenRole = Annotated[
    KeyRole, typer.Option("--role", help="read, schedule, admin or operate.  [default: read]")
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("api-key")(with_session(api_key))


def api_key(
    session: Session, name: Name, *, tenant: Tenants, role: GivenRole = KeyRole.READ
) -> None:
    """Make a key for the HTTP port, and the entry to be added to its list.

    Nothing is stored: give the key to the caller, and put the entry into the JSON list of
    BELFRY_HTTP_API_KEYS_FILE, which workers read again when it changes. Example:

    belfry api-key orders --tenant orders --role schedule
    """
    from belfry.api.keys import digest, new_key

    key = new_key()
    entry = {"name": name, "sha256": digest(key), "tenants": tenant, "role": str(role)}
    text = f"key    {key}\nentry  {_json(entry)}"
    session.printer.one({"key": key, "entry": entry}, text)


def _json(entry: Mapping[str, object]) -> str:
    import orjson

    return orjson.dumps(entry).decode()
