"""``belfry topics`` and ``belfry schema``: needs of a cluster before a worker starts.

Topics lie in Kafka, schemas in the registry. Both commands make missing ones and leave existing
ones alone; both `check` commands compare and end with exit code 1 if something is wrong.

A worker makes its topics itself unless BELFRY_CREATE_TOPICS is off. These commands are for clusters
where somebody with more rights does it, and for checks in a pipeline. Each may be repeated:

    belfry topics create       ─► creates missing ones         exit code 0
    belfry topics check        ─► problem, risk or skipped     1 for a problem or a risk
    belfry schema register     ─► ids of the subjects          0
    belfry schema check        ─► the differences              1 for a problem

Existing topics are never altered. A wrong setting is told with the command that mends it, since its
operator has to decide when to change it under a running cluster.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from belfry.cli import log_lines
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.session import Session, with_session
from belfry.schedules.request import tenant_problem

if TYPE_CHECKING:
    from belfry.kafka.topic_rules import TopicProblem
    from belfry.kafka.wanted_topics import TopicSpec
    from belfry.registry.client import Registry


def register(app: typer.Typer) -> None:
    """Add ``topics`` and ``schema`` with their commands to the program.

    They are two groups of one module: a cluster needs both before a worker starts.
    """
    group = Program()
    group.command("create")(with_session(create))
    group.command("check")(with_session(check))
    app.add_typer(group, name="topics", help="Create and check belfry's topics.")
    schemas = Program()
    schemas.command("register")(with_session(register_schemas))
    schemas.command("check")(with_session(check_schemas))
    app.add_typer(schemas, name="schema", help="Register and check belfry's schemas.")


def create(
    session: Session,
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TENANT",
            help="Create an input topic of this tenant's own as well; may be repeated.",
        ),
    ] = None,
    dead_letters: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TENANT",
            help="Create a topic of dead letters for this tenant as well; may be repeated.",
        ),
    ] = None,
) -> None:
    """Create the topics that are missing; those that exist stay as they are.

    A worker does the same when it starts, unless told not to.  Topics of tenants' own are only
    created here: workers find them within seconds.
    """
    from confluent_kafka import KafkaException

    from belfry.kafka import topics
    from belfry.kafka.lacking import NOT_LET, may_not_create

    for name in (*(tenant or ()), *(dead_letters or ())):
        problem = tenant_problem(name)
        if problem is not None:
            raise WrongUse(problem.reason)
    cluster, admin = session.admin()
    wanted = topics.missing(admin, session.settings)
    wanted += topics.missing_of_tenants(admin, session.settings, tenant or [], dead_letters or [])
    specs = {spec.name: spec for spec in wanted}
    try:
        created = topics.create_topics(admin, wanted)
    # Brokers refuse to create topics without the right to: the message names the right.
    except KafkaException as error:
        if error.args[0].code() not in NOT_LET:
            raise
        raise CommandError(may_not_create(session.settings)) from None
    if not created:
        session.printer.note(f"Nothing to create: all topics exist at {cluster.servers}.")
    session.printer.many(_created(specs[name]) for name in created if name in specs)


def check(session: Session) -> int:
    """Compare topics and brokers with what they should be; exit code 1 on problems.

    Says what each setting endangers, and the command that mends it.  A part that the cluster does
    not let belfry see is told as unchecked, and is not a problem by itself.
    """
    from belfry.kafka import topics
    from belfry.kafka.cluster_checks import look_at_brokers
    from belfry.kafka.topic_rules import TopicProblem

    log_lines.to_stderr()
    cluster, admin = session.admin()
    missing = topics.missing(admin, session.settings)
    problems = topics.problems(admin, session.settings)
    problems += look_at_brokers(admin, session.settings).problems
    absent = [TopicProblem(spec.name, "does not exist", CURE, fatal=True) for spec in missing]
    found = [*absent, *problems]
    if not any(each.checked for each in found):
        session.printer.note(f"All topics are as they should be at {cluster.servers}.")
    session.printer.many((problem_json(each), problem_text(each)) for each in found)
    return Exit.ERROR if any(each.checked for each in found) else Exit.OK


# The cure for a topic that does not exist.
CURE = "belfry topics create"


def _created(spec: TopicSpec) -> tuple[dict[str, object], str]:
    """A topic that was created, for programs and for people."""
    text = f"created  {spec.name}  {spec.partitions} partitions, {spec.replication} replicas"
    return dict(spec._asdict()), text


def problem_json(problem: TopicProblem) -> dict[str, object]:
    """A problem of a topic for programs.

    `fatal` says that a worker does not start with it, `checked` that belfry could look at all.
    `cure` says what to do, `why` what is endangered; null if there is nothing to add.
    """
    return {
        "topic": problem.topic,
        "problem": problem.what,
        "cure": problem.cure,
        "fatal": problem.fatal,
        "why": problem.why or None,
        "checked": problem.checked,
    }


def problem_text(problem: TopicProblem) -> str:
    """A problem of a topic for people: what is wrong, why it matters, and what to do."""
    kind = "problem" if problem.fatal else "risk" if problem.checked else "skipped"
    why = f"\n{'':10}Why: {problem.why}." if problem.why else ""
    return f"{kind:9} {problem.topic}: {problem.what}.{why}\n{'':10}To do: {problem.cure}"


def register_schemas(session: Session) -> None:
    """Register belfry's schemas with compatibility FULL_TRANSITIVE.

    Registered schemas stay as they are.
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


def check_schemas(session: Session) -> int:
    """Compare the registry with this release; exit code 1 on problems."""
    from belfry.registry.subjects import check_all

    with closing(_registry(session)) as registry:
        found = check_all(registry, session.settings)
    if not found:
        session.printer.note(f"All subjects are as they should be at {registry.url}.")
    session.printer.many(({"problem": each}, f"problem  {each}") for each in found)
    return Exit.ERROR if found else Exit.OK


def _registry(session: Session) -> Registry:
    """The client of the registry, to be closed; `WrongUse` if none is configured."""
    from belfry.registry.subjects import open_registry

    registry = open_registry(session.settings)
    if registry is None:
        raise WrongUse(
            "No schema registry is configured: give --schema-registry-url or set"
            " BELFRY_SCHEMA_REGISTRY_URL. (belfry works without one, too: records then carry"
            " Avro's single-object encoding.)"
        )
    return registry
