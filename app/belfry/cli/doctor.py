"""``belfry doctor``: looks at everything that belfry needs, and says what to do about it.

Nothing is written anywhere.  That is why the clock is judged by what a worker has measured: Kafka
tells its time only to those who write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from belfry.cli.check import Check, Status
from belfry.cli.doctor_changelog import changelog_checks
from belfry.cli.doctor_group import group_checks
from belfry.cli.doctor_kept import identity_checks, settings_checks
from belfry.cli.doctor_letters import letter_checks
from belfry.cli.doctor_replicas import replica_checks
from belfry.cli.doctor_rights import rights_checks
from belfry.cli.doctor_transactions import transaction_checks
from belfry.cli.doctor_worker import worker_checks
from belfry.cli.failures import Exit
from belfry.cli.session import Session, with_session
from belfry.cli.shown import amount

if TYPE_CHECKING:
    from belfry.kafka.topic_rules import TopicProblem


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("doctor")(with_session(doctor))


def doctor(session: Session) -> int:
    """Check all that belfry needs, and say what to do.

    Looks at broker, rights, topics with their ids and replicas, settings that workers share,
    signatures of the changelog, the group of workers, transactions that stay open, what was refused
    lately, schema registry, all workers with their clocks, and tenants whose events wait. Nothing
    is changed and nothing is written. Exit code 1 on problems.
    """
    worst: list[Status] = []

    def results() -> Iterator[tuple[dict[str, Any], str]]:
        for check in checks(session):
            worst.append(check.status)
            yield {**check._asdict(), "to_do": check.to_do or None}, _line(check)

    session.printer.many(results())
    return Exit.ERROR if Status.PROBLEM in worst else Exit.OK


def _line(check: Check) -> str:
    to_do = f"\n{'':22}To do: {check.to_do}" if check.to_do else ""
    return f"{check.status:8} {check.check:12} {check.detail}{to_do}"


def checks(session: Session) -> Iterator[Check]:
    """All checks, each as soon as it is done."""
    cluster_id: list[str] = []
    yield from _kafka(session, cluster_id.append)
    yield from _registry(session)
    yield from worker_checks(session, cluster_id[0] if cluster_id else None)


def _kafka(session: Session, tell_id: Callable[[str], object]) -> Iterator[Check]:
    from belfry.client.errors import BelfryError
    from belfry.kafka.lacking import lacking

    began = monotonic()
    try:
        cluster, admin = session.admin()
    except BelfryError as error:
        yield Check("kafka", Status.PROBLEM, str(error))
        yield Check("topics", Status.SKIPPED, "No broker to ask.")
        return
    took_ms = (monotonic() - began) * 1000
    brokers = cluster.reach(admin)
    tell_id(str(brokers.cluster_id))
    detail = (
        f"Cluster {brokers.cluster_id}, {amount(len(brokers.brokers), 'broker')},"
        f" answers at {cluster.servers} in {took_ms:.0f} ms."
    )
    yield Check("kafka", Status.OK, detail)
    lacks = [*lacking(admin, session.settings)]
    yield from rights_checks(lacks, session.settings)
    yield from _brokers(session, admin)
    yield from _topics(session, admin, {topic for each in lacks for topic in each.hides})
    yield from replica_checks(brokers, session.settings)
    yield from identity_checks(admin, brokers, session.settings)
    yield from settings_checks(brokers, session.settings)
    yield from changelog_checks(brokers, session.settings)
    yield from group_checks(admin, session.settings)
    yield from transaction_checks(admin, session.settings)
    yield from letter_checks(admin, brokers, session.settings)


def _topics(session: Session, admin: Any, hidden: set[str]) -> Iterator[Check]:
    from confluent_kafka import KafkaException

    from belfry.kafka import topics

    try:
        absent = topics.missing(admin, session.settings)
        problems = topics.problems(admin, session.settings)
    except KafkaException as error:
        yield Check("topics", Status.PROBLEM, f"Kafka refuses to tell: {error.args[0].str()}.")
        return
    if hidden:
        names = ", ".join(sorted(hidden))
        yield Check("topics", Status.SKIPPED, f"Hidden from this user (see rights): {names}.")
    missing = [spec.name for spec in absent if spec.name not in hidden]
    if missing:
        detail = f"Missing: {', '.join(missing)}."
        yield Check("topics", Status.PROBLEM, detail, "belfry topics create")
    yield from map(_finding, problems)
    if not absent and not any(each.checked for each in problems):
        found = topics.wanted_topics(session.settings, 1)
        yield Check("topics", Status.OK, f"All {len(found)} topics are as they should be.")


def _finding(each: TopicProblem, check: str = "topics") -> Check:
    status = Status.PROBLEM if each.fatal else Status.RISK if each.checked else Status.SKIPPED
    why = f" Why: {each.why}." if each.why else ""
    return Check(check, status, f"{each.topic}: {each.what}.{why}", each.cure)


def _brokers(session: Session, admin: Any) -> Iterator[Check]:
    from confluent_kafka import KafkaException

    from belfry.kafka.cluster_checks import look_at_brokers

    try:
        found = look_at_brokers(admin, session.settings)
    except KafkaException as error:
        yield Check("brokers", Status.PROBLEM, f"Kafka refuses to tell: {error.args[0].str()}.")
        return
    for each in found.problems:
        yield _finding(each, "brokers")
    if not any(each.checked for each in found.problems):
        yield Check("brokers", Status.OK, f"{found.told}, set as promises need it.")


def _registry(session: Session) -> Iterator[Check]:
    if session.settings.schema_registry_url is None:
        detail = "No schema registry is configured; single-object encoding needs none."
        yield Check("registry", Status.SKIPPED, detail)
        return
    from belfry.registry.answers import RegistryError
    from belfry.registry.subjects import check_all, open_registry

    registry = open_registry(session.settings)
    assert registry is not None
    try:
        with closing(registry):
            found = check_all(registry, session.settings)
    except RegistryError as error:
        yield Check("registry", Status.PROBLEM, str(error))
        return
    for each in found:
        yield Check("registry", Status.PROBLEM, each)
    if not found:
        detail = f"All subjects are as they should be at {registry.url}."
        yield Check("registry", Status.OK, detail)
