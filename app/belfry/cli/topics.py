"""``belfry topics``: create what is missing, and check what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from belfry.cli.failures import Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.session import Session, with_session
from belfry.schedules.request import tenant_problem

if TYPE_CHECKING:
    from belfry.kafka.topic_rules import TopicProblem
    from belfry.kafka.topics import TopicSpec


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    group = Program()
    group.command("create")(with_session(create))
    group.command("check")(with_session(check))
    app.add_typer(group, name="topics", help="Create and check belfry's topics.")


def create(
    session: Session,
    tenant: Annotated[
        list[str] | None,
        typer.Option(help="Create an input topic of this tenant's own as well; may be repeated."),
    ] = None,
) -> None:
    """Create the topics that are missing; those that exist stay as they are.

    A worker does the same when it starts, unless told not to.  Input topics of tenants' own are
    only created here: workers find them within seconds.
    """
    from belfry.kafka import topics

    for name in tenant or ():
        problem = tenant_problem(name)
        if problem is not None:
            raise WrongUse(problem.reason)
    cluster, admin = session.admin()
    wanted = topics.missing(admin, session.settings)
    wanted += topics.missing_of_tenants(admin, session.settings, tenant or [])
    specs = {spec.name: spec for spec in wanted}
    created = topics.create_topics(admin, wanted)
    if not created:
        session.printer.note(f"Nothing to create: all topics exist at {cluster.servers}.")
    session.printer.many(_created(specs[name]) for name in created if name in specs)


def check(session: Session) -> int:
    """Compare topics and brokers with what they should be; exit code 1 on problems.

    Says what each setting endangers, and the command that mends it.  What the cluster does not let
    belfry look at is told as unchecked, and is no problem by itself.
    """
    from belfry.kafka import topics
    from belfry.kafka.cluster_checks import look_at_brokers
    from belfry.kafka.topic_rules import TopicProblem

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


CURE = "belfry topics create"


def _created(spec: TopicSpec) -> tuple[dict[str, object], str]:
    text = f"created  {spec.name}  {spec.partitions} partitions, {spec.replication} replicas"
    return dict(spec._asdict()), text


def problem_json(problem: TopicProblem) -> dict[str, object]:
    """A problem of a topic for programs."""
    return {
        "topic": problem.topic,
        "problem": problem.what,
        "cure": problem.cure,
        "fatal": problem.fatal,
        "why": problem.why or None,
        "checked": problem.checked,
    }


def problem_text(problem: TopicProblem) -> str:
    """A problem of a topic for people."""
    kind = "problem" if problem.fatal else "risk" if problem.checked else "skipped"
    why = f"\n{'':10}Why: {problem.why}." if problem.why else ""
    return f"{kind:9} {problem.topic}: {problem.what}.{why}\n{'':10}To do: {problem.cure}"
