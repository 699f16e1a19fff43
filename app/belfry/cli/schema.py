"""``belfry schema``: belfry's own Avro schemas in the registry."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import typer

from belfry.cli.failures import Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.registry.client import Registry


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    group = Program()
    group.command("register")(with_session(register_schemas))
    group.command("check")(with_session(check))
    app.add_typer(group, name="schema", help="Register and check belfry's schemas.")


def register_schemas(session: Session) -> None:
    """Register belfry's schemas with compatibility FULL_TRANSITIVE.

    What is registered already stays as it is.
    """
    from belfry.registry.subjects import publish_all, subjects

    names = subjects(session.settings)
    with closing(_registry(session)) as registry:
        published = publish_all(registry, session.settings)
    session.printer.many(
        (
            {"subject": subject, "schema": names[subject], "id": schema_id},
            f"id {schema_id:<6} {subject}  {names[subject]}",
        )
        for subject, schema_id in published.items()
    )


def check(session: Session) -> int:
    """Compare the registry with this release; exit code 1 on problems."""
    from belfry.registry.subjects import check_all

    with closing(_registry(session)) as registry:
        found = check_all(registry, session.settings)
    if not found:
        session.printer.note(f"All subjects are as they should be at {registry.url}.")
    session.printer.many(({"problem": each}, f"problem  {each}") for each in found)
    return Exit.ERROR if found else Exit.OK


def _registry(session: Session) -> Registry:
    from belfry.registry.subjects import open_registry

    registry = open_registry(session.settings)
    if registry is None:
        raise WrongUse(
            "No schema registry is configured: give --schema-registry-url or set"
            " BELFRY_SCHEMA_REGISTRY_URL. (belfry works without one, too: records then carry"
            " Avro's single-object encoding.)"
        )
    return registry
