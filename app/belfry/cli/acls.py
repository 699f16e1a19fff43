"""``belfry acls``: the rights that a worker, a tenant or a sink needs, for Kafka or for Strimzi.

The list of these rights is in `belfry.kafka.rights`, which the worker's own checks use as well.
This module reads options and prints. Nothing is asked of a broker: the topic prefix and the group
come from the settings, so run it with the settings that the workers will have.

    belfry acls worker                          lines for kafka-acls.sh, to be pasted
    belfry acls worker --as strimzi             one KafkaUser, for kubectl apply -f -
    belfry acls tenant payments --user alice    the rights of a tenant, given to User:alice

With ``--output json`` each right is an object with the fields of `Right`, the user, and the command
that gives it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from belfry.cli.failures import WrongUse
from belfry.cli.help import Program
from belfry.cli.session import Session, with_session
from belfry.schedules.request import tenant_problem

if TYPE_CHECKING:
    from belfry.kafka.rights import Right


class AclFormat(StrEnum):
    """How rights are written: lines that call Kafka's own tool, or a resource of Strimzi."""

    KAFKA_ACLS = "kafka-acls"
    STRIMZI = "strimzi"


As = Annotated[AclFormat, typer.Option("--as", help="Commands, or a KafkaUser for Strimzi.")]
User = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who gets the rights.", show_default=False)
]
Cluster = Annotated[
    str, typer.Option("--kafka", metavar="NAME", help="The Kafka resource of a KafkaUser.")
]
SharedOutput = Annotated[
    bool,
    typer.Option("--shared-output", help="With the events of all tenants that share an output."),
]
Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="Whose topics.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add ``acls`` with its commands to the program; each needs the common options."""
    group = Program()
    group.command("worker")(with_session(worker))
    group.command("tenant")(with_session(tenant))
    group.command("sink")(with_session(sink))
    app.add_typer(group, name="acls", help="Print the rights that an authorizer has to give.")


def worker(
    session: Session,
    *,
    user: User = None,
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="With the right to create topics.")
    ] = False,
    name_transactions: Annotated[
        bool,
        typer.Option("--name-transactions", help="With what names others' open transactions."),
    ] = False,
    output_topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="An output topic outside of the prefix; may be repeated."
        ),
    ] = None,
    form: As = AclFormat.KAFKA_ACLS,
    kafka: Cluster = "kafka",
) -> None:
    """Print the rights that workers need; without the right to create topics, these must exist.

    Prefix and group are those of the settings. Needs no broker. Example:

    belfry acls worker --as strimzi
    """
    from belfry.kafka.rights import Options, worker_rights

    options = Options(create_topics, name_transactions, tuple(output_topic or ()))
    cluster = session.settings.cluster
    rights = worker_rights(cluster.topic_prefix, cluster.app_id, options)
    _print(session, rights, user or cluster.app_id, form, kafka)


def tenant(
    session: Session,
    name: Tenant,
    *,
    user: User = None,
    shared_output: SharedOutput = False,
    form: As = AclFormat.KAFKA_ACLS,
    kafka: Cluster = "kafka",
) -> None:
    """Print the rights that a tenant with an input topic of its own needs.

    Its groups are those whose names begin with its name and a dot. Example:

    belfry acls tenant payments
    """
    from belfry.kafka.rights import tenant_rights

    _check(name)
    rights = tenant_rights(session.settings.cluster.topic_prefix, name, shared=shared_output)
    _print(session, rights, user or name, form, kafka)


def sink(
    session: Session,
    connector: Annotated[
        str, typer.Argument(metavar="CONNECTOR", help="Name of the sink.", show_default=False)
    ],
    *,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="TENANT",
            help="Whose events it reads; may be repeated.",
            show_default=False,
        ),
    ] = None,
    shared_output: SharedOutput = False,
    user: User = None,
    form: As = AclFormat.KAFKA_ACLS,
    kafka: Cluster = "kafka",
) -> None:
    """Print the rights that a sink of Kafka Connect needs to read events.

    Example:

    belfry acls sink archive --tenant payments
    """
    from belfry.kafka.rights import sink_rights

    if not of and not shared_output:
        raise WrongUse("Whose events does it read? Give --tenant NAME, or --shared-output.")
    for name in of or ():
        _check(name)
    prefix = session.settings.cluster.topic_prefix
    rights = sink_rights(prefix, connector, of or (), shared=shared_output)
    _print(session, rights, user or connector, form, kafka)


def _check(name: str) -> None:
    """Raise `WrongUse` where this cannot be the name of a tenant, before rights for it are
    printed.
    """
    problem = tenant_problem(name)
    if problem is not None:
        raise WrongUse(problem.reason)


def _print(session: Session, rights: list[Right], user: str, form: AclFormat, kafka: str) -> None:
    """Print rights in the form that was asked for.

    For Strimzi that is one document of YAML with all of them. For Kafka's tool it is one command
    for each right, and each can be run again without harm.
    """
    from belfry.kafka.rights import commands, kafka_user

    if form is AclFormat.STRIMZI:
        # Every JSON text is YAML as well.
        whole = kafka_user(rights, user, kafka)
        session.printer.one(whole, orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode())
        return
    lines = commands(rights, user, session.settings.bootstrap_servers)
    session.printer.many(
        ({**right._asdict(), "user": user, "command": line}, line)
        for right, line in zip(rights, lines, strict=True)
    )
