"""``belfry doctor``: looks at everything that belfry needs, and says what to do about it.

Nothing is written anywhere.  That is why the clock is judged by what a worker has measured: Kafka
tells its time only to those who write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import typer

from belfry.cli.check import Check, Status
from belfry.cli.doctor_changelog import changelog_checks
from belfry.cli.doctor_group import group_checks
from belfry.cli.doctor_kept import identity_checks, settings_checks
from belfry.cli.doctor_rights import rights_checks
from belfry.cli.doctor_tenants import tenant_checks
from belfry.cli.doctor_transactions import transaction_checks
from belfry.cli.failures import Exit
from belfry.cli.session import Session, with_session

HTTP_S: Final = 3.0
TOLERATED_SKEW_S: Final = 0.5
if TYPE_CHECKING:
    from belfry.kafka.topic_rules import TopicProblem

SKEW: Final = "belfry_clock_skew_seconds"
KEYS: Final = "belfry_api_keys"
KEY_STATES: Final = ("valid", "expiring", "expired")
FOREIGN: Final = "belfry_foreign_records_total"


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("doctor")(with_session(doctor))


def doctor(session: Session) -> int:
    """Check all that belfry needs, and say what to do.

    Looks at broker, rights, topics and their ids, settings that workers share, signatures of the
    changelog, the group of workers, transactions that stay open, schema registry, worker, clock,
    and tenants whose events wait. Nothing is changed and nothing is written. Exit code 1 on
    problems.
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
    steps: list[Callable[[Session], Iterator[Check]]] = [_kafka, _registry, _worker]
    for step in steps:
        yield from step(session)


def _kafka(session: Session) -> Iterator[Check]:
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
    detail = (
        f"Cluster {brokers.cluster_id}, {_counted(len(brokers.brokers), 'broker')},"
        f" answers at {cluster.servers} in {took_ms:.0f} ms."
    )
    yield Check("kafka", Status.OK, detail)
    lacks = [*lacking(admin, session.settings)]
    yield from rights_checks(lacks, session.settings)
    yield from _brokers(session, admin)
    yield from _topics(session, admin, {topic for each in lacks for topic in each.hides})
    yield from identity_checks(admin, brokers, session.settings)
    yield from settings_checks(admin, brokers, session.settings)
    yield from changelog_checks(admin, brokers, session.settings)
    yield from group_checks(admin, session.settings)
    yield from transaction_checks(admin, session.settings)


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


def _worker(session: Session) -> Iterator[Check]:
    url = session.settings.http_url.rstrip("/")
    status, answer = fetch(f"{url}/healthz/ready")
    if status is None:
        detail = f"No worker answers at {url}: {answer}."
        # An address that nobody gave is a guess: workers may well run elsewhere.
        given = "http_url" in session.settings.model_fields_set
        found = Status.PROBLEM if given else Status.SKIPPED
        yield Check("worker", found, detail, "give the --http-url of a worker, or start one")
        yield Check("clock", Status.SKIPPED, "Only a running worker measures it.")
        return
    if status == 200:
        yield Check("worker", Status.OK, f"Ready at {url}.")
    else:
        detail = f"The worker at {url} is not ready (HTTP {status}): {answer[:300]}"
        yield Check("worker", Status.PROBLEM, detail, "wait for it, or read its log")
    code, page = fetch(f"{url}/metrics")
    metrics = page if code == 200 else ""
    yield _clock(url, metrics)
    yield from keys_checks(metrics)
    yield from _foreign(metrics)
    yield from tenant_checks(session)


def _foreign(metrics: str) -> Iterator[Check]:
    """What the worker has skipped because nobody of belfry wrote it."""
    for topic, records in foreign_records(metrics):
        yield Check(
            "strangers",
            Status.RISK,
            f"{topic}: {_counted(records, 'record')} met since the worker's start that no worker,"
            " and nobody with its secret, wrote.",
            "find out who else may write there, and take the right away; the worker's log has the"
            " offsets (docs/threat-model.md)",
        )


def foreign_records(metrics: str) -> list[tuple[str, int]]:
    """Topics of a page of metrics in which strangers' records were met, and how many."""
    lines = (line for line in metrics.splitlines() if line.startswith(FOREIGN + "{"))
    found = [(line.split('"')[1], int(float(line.rpartition(" ")[2]))) for line in lines]
    return [(topic, records) for topic, records in found if records]


def keys_checks(metrics: str) -> Iterator[Check]:
    """Whether an API key of the worker's list ends soon; nothing where there is no list."""
    found = {state: int(figure(metrics, f'{KEYS}{{state="{state}"}}') or 0) for state in KEY_STATES}
    if not any(found.values()):
        return
    told = ", ".join(f"{number} {state}" for state, number in found.items() if number)
    detail = f"API keys of the worker's list: {told}."
    if found["expiring"]:
        to_do = "belfry api-key list names them; make new ones, and move their callers"
        yield Check("api keys", Status.RISK, f"{detail} Some expire within 14 days.", to_do)
    else:
        yield Check("api keys", Status.OK, detail)


def figure(metrics: str, series: str) -> float | None:
    """The value of a series on a page of metrics, or None where there is none."""
    line = next((each for each in metrics.splitlines() if each.startswith(series + " ")), None)
    return None if line is None else float(line.rpartition(" ")[2])


def _clock(url: str, metrics: str) -> Check:
    skew_s = skew(metrics)
    if skew_s is None:
        return Check("clock", Status.SKIPPED, f"{url}/metrics shows no {SKEW}.")
    detail = f"The worker's clock differs from the broker's by {skew_s * 1000:.0f} ms."
    if abs(skew_s) <= TOLERATED_SKEW_S:
        return Check("clock", Status.OK, detail)
    return Check("clock", Status.PROBLEM, detail, "synchronise the clocks of both (NTP)")


def skew(metrics: str) -> float | None:
    """The largest skew in a page of metrics, or None where there is none."""
    found = [
        float(line.rpartition(" ")[2]) for line in metrics.splitlines() if line.startswith(SKEW)
    ]
    return max(found, key=abs, default=None)


def fetch(url: str) -> tuple[int | None, str]:
    """Status and body of a page, or None and why there is none."""
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=HTTP_S) as response:  # noqa: S310  (an address the user gave)
            return response.status, response.read().decode(errors="replace")
    except HTTPError as error:
        return error.code, error.read().decode(errors="replace").strip()
    except (URLError, OSError, ValueError) as error:
        return None, str(getattr(error, "reason", error))


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
