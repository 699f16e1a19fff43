"""``belfry sql``: tables of Flink and ksqlDB over events and the lifecycle.

Events lie in Kafka topics with headers and Avro values. To read them by SQL a table has to name the
topic, the headers and the columns, and none of it is worth writing by hand:

    $ belfry sql flink --tenant demo > tables.sql
    $ sql-client.sh -i tables.sql
    > SELECT schedule_id, scheduled_at FROM belfry_fired

This module has the options, and refuses those that do not go together; `belfry.cli.sql_tables`
makes the statements from the schemas. The command connects to no server: brokers and registry stand
in the statements as the settings have them, and need not answer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.session import Session, with_session
from belfry.schedules.request import tenant_problem


class Engine(StrEnum):
    """Whose SQL."""

    FLINK = "flink"
    KSQLDB = "ksqldb"


Tenants = Annotated[
    list[str] | None,
    typer.Option("--tenant", metavar="TENANT", help="Whose events; may be repeated."),
]
Enveloped = Annotated[
    list[str] | None,
    typer.Option(
        "--envelope", metavar="TENANT", help="The same, of a tenant with delivery ENVELOPE."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("sql")(with_session(sql))


def sql(
    session: Session,
    engine: Annotated[
        Engine,
        typer.Argument(metavar="ENGINE", help="Whose SQL: flink or ksqldb.", show_default=False),
    ],
    *,
    tenant: Tenants = None,
    envelope: Enveloped = None,
) -> None:
    """Print tables over fired events and the lifecycle for Flink or ksqlDB.

    Brokers, prefix and registry are those of the settings; the lifecycle and --envelope need a
    registry. Flink reads all tenants if none is named. Needs no broker. Example:

    belfry sql flink --tenant demo
    """
    from belfry.cli.sql_tables import Place, flink, ksqldb

    settings = session.settings
    plain, enveloped = tenant or [], envelope or []
    for name in (*plain, *enveloped):
        problem = tenant_problem(name)
        if problem is not None:
            raise WrongUse(problem.reason)
    if enveloped and not settings.schema_registry_url:
        raise WrongUse(
            "--envelope reads Avro, whose schemas Flink and ksqlDB ask a registry for: give"
            " --schema-registry-url."
        )
    if engine is Engine.KSQLDB and not (plain or enveloped):
        raise WrongUse("A stream of ksqlDB reads one topic: name each with --tenant or --envelope.")
    place = Place(
        settings.bootstrap_servers, settings.cluster.topic_prefix, settings.schema_registry_url
    )
    made = flink if engine is Engine.FLINK else ksqldb
    session.printer.many(
        ({"statement": each}, each + "\n") for each in made(place, plain, enveloped)
    )
