"""``belfry doctor``: checks everything that belfry needs, and says what to do.

Nothing is written anywhere.  That is why the clock is judged by what a worker has measured: Kafka
tells its time only to those who write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import typer

from belfry.cli import log_lines
from belfry.cli.check import Check, Status
from belfry.cli.doctor_changelog import changelog_checks
from belfry.cli.doctor_deliveries import delivery_checks
from belfry.cli.doctor_group import group_checks
from belfry.cli.doctor_kept import identity_checks, settings_checks
from belfry.cli.doctor_mirror import is_passive, mirror_checks
from belfry.cli.doctor_topics import finding, letter_checks, replica_checks, topic_checks
from belfry.cli.doctor_transactions import transaction_checks
from belfry.cli.doctor_worker import worker_checks
from belfry.cli.failures import Exit
from belfry.cli.session import Session, with_session
from belfry.cli.shown import amount

if TYPE_CHECKING:
    from belfry.kafka.lacking import Lacking
    from belfry.settings import SharedSettings


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("doctor")(with_session(doctor))


def doctor(session: Session) -> int:
    """Check all that belfry needs, and say what to do.

    Looks at broker, rights, topics with their ids and replicas, settings that workers share,
    signatures of the changelog, the group of workers, transactions that stay open, what was refused
    lately, deliveries that nobody makes, a mirror's marks, schema registry, all workers with their
    clocks and time zone data, key groups that do not arrive, quotas, and tenants whose events wait.
    Nothing is changed and nothing is written. Exit code 1 on problems.
    """
    log_lines.to_stderr()
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
    passive = False
    for check in _kafka(session, cluster_id.append):
        passive = passive or is_passive(check)
        yield check
    yield from _registry(session)
    yield from worker_checks(session, cluster_id[0] if cluster_id else None, passive=passive)


def _kafka(session: Session, tell_id: Callable[[str], object]) -> Iterator[Check]:
    from belfry.client.errors import BelfryError
    from belfry.kafka.lacking import missing_rights

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
    lacks = [*missing_rights(admin, session.settings)]
    yield from _rights(lacks, session.settings)
    yield from _brokers(session, admin)
    hidden = {topic for each in lacks for topic in each.hides}
    yield from topic_checks(admin, hidden, session.settings)
    yield from replica_checks(brokers, session.settings)
    yield from identity_checks(admin, brokers, session.settings)
    yield from settings_checks(brokers, session.settings)
    yield from mirror_checks(brokers, session.settings, int(time() * 1000))
    yield from changelog_checks(brokers, session.settings)
    yield from group_checks(admin, session.settings)
    yield from transaction_checks(admin, session.settings)
    yield from letter_checks(admin, brokers, session.settings)
    yield from delivery_checks(admin, brokers, session.settings)


def _rights(found: Sequence[Lacking], settings: SharedSettings) -> Iterator[Check]:
    """One line for each right that is missing, or one that says that none is.

    The command may run as another user than the workers, so a missing right is a risk and not a
    problem.
    """
    from belfry.kafka.denials import user_of

    for each in found:
        detail = f"{each.problem}, as a worker with these credentials has to."
        yield Check("rights", Status.RISK, detail, each.cure)
    if not found:
        user = user_of(settings.kafka_properties())
        yield Check("rights", Status.OK, f"User:{user} has the rights of a worker.")


def _brokers(session: Session, admin: Any) -> Iterator[Check]:
    from confluent_kafka import KafkaException

    from belfry.kafka.cluster_checks import look_at_brokers

    try:
        found = look_at_brokers(admin, session.settings)
    except KafkaException as error:
        yield Check("brokers", Status.PROBLEM, f"Kafka refuses to tell: {error.args[0].str()}.")
        return
    for each in found.problems:
        yield finding(each, "brokers")
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
