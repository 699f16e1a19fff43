"""`belfry doctor`: the worker at `--http-url`, and by it all workers and the tenants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.cli.check import Check, Status
from belfry.cli.doctor_cluster import SKEW_S, cluster_checks, tenant_checks
from belfry.cli.doctor_deliveries import figure, removed_checks
from belfry.cli.doctor_mirror import without_following
from belfry.cli.doctor_moves import move_checks
from belfry.cli.doctor_quotas import quota_checks, throttled_checks
from belfry.cli.session import Session
from belfry.cli.shown import amount, plain

HTTP_S: Final = 3.0
SKEW: Final = "belfry_clock_skew_seconds"
KEYS: Final = "belfry_api_keys"
KEY_STATES: Final = ("valid", "expiring", "expired")
FOREIGN: Final = "belfry_foreign_records_total"
UNTOLD: Final = "it does not tell why to callers without a key"
NO_WORKER: Final = "give the --http-url of a worker, or start one"


def worker_checks(
    session: Session, kafka_cluster_id: str | None, *, passive: bool = False
) -> Iterator[Check]:
    """Whether a worker answers, is ready and trusts its clock; then the others, and tenants.

    In a `passive` cluster, which follows another one, workers wait, as they should.
    """
    url = session.settings.http_url.rstrip("/")
    status, answer = fetch(f"{url}/healthz/ready")
    if status is None:
        detail = f"No worker answers at {url}: {answer}."
        # Without a given address the default is a guess: workers may well run elsewhere.
        given = "http_url" in session.settings.model_fields_set
        found = Status.PROBLEM if given else Status.SKIPPED
        yield Check("worker", found, detail, NO_WORKER)
        yield Check("clock", Status.SKIPPED, "Only a running worker measures it.")
        return
    ready = readiness(url, status, answer, passive=passive)
    yield ready
    code, page = fetch(f"{url}/metrics")
    metrics = page if code == 200 else ""
    clock = _clock(url, metrics)
    yield clock
    yield from keys_checks(metrics)
    yield from foreign_checks(metrics)
    yield from removed_checks(metrics)
    yield from throttled_checks(metrics, session.settings.bootstrap_servers)
    yield from cluster_checks(session, kafka_cluster_id, said_by(ready, clock), passive=passive)
    yield from move_checks(session)
    yield from tenant_checks(session)
    yield from quota_checks(session)


def readiness(url: str, status: int, answer: str, *, passive: bool = False) -> Check:
    """What `/healthz/ready` says, in sentences; or that no worker of belfry answers there."""
    import orjson

    try:
        told = orjson.loads(answer)
        ready = bool(told["ready"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        detail = (
            f"What answers at {url} is no worker of belfry, or does not let you in (HTTP {status}):"
            f" {plain(answer[:200])}"
        )
        return Check("worker", Status.PROBLEM, detail, NO_WORKER)
    if ready:
        return Check("worker", Status.OK, f"Ready at {url}.")
    waits = passive and bool(told.get("partitions"))
    if waits:
        told = without_following(told)
    missing = [str(each) for each in told.get("problems", ())]
    missing += [
        f"partition {each['partition']}: {each['missing']}"
        for each in told.get("partitions", ())
        if each.get("missing")
    ]
    if passive and not (missing or told.get("partitions")):
        # Other checks ask with the key, if there is one, and tell of this worker as well.
        detail = f"The worker at {url} is not ready, and {UNTOLD}; its cluster follows another one."
        return Check("worker", Status.SKIPPED, detail)
    if waits and not missing:
        detail = f"The worker at {url} waits, as this cluster follows another one."
        return Check("worker", Status.OK, detail)
    why = plain("; ".join(missing)) or UNTOLD
    to_do = "what it waits for is named; its log has the course of it"
    return Check("worker", Status.PROBLEM, f"The worker at {url} is not ready: {why}.", to_do)


def said_by(*checks: Check) -> frozenset[str]:
    """Names of the checks that have told a fault, so that others need not repeat it."""
    return frozenset(
        each.check for each in checks if each.status is Status.PROBLEM and UNTOLD not in each.detail
    )


def foreign_checks(metrics: str) -> Iterator[Check]:
    """Records that the worker has skipped because no process of belfry wrote them."""
    for topic, records in foreign_records(metrics):
        yield Check(
            "strangers",
            Status.RISK,
            f"{topic}: {amount(records, 'record')} met since the worker's start that no worker,"
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
    """Whether an API key of the worker's list ends soon; empty if there is no list."""
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


def _clock(url: str, metrics: str) -> Check:
    skew_s = skew(metrics)
    if skew_s is None:
        return Check("clock", Status.SKIPPED, f"{url}/metrics shows no {SKEW}.")
    detail = f"The worker's clock differs from the broker's by {skew_s * 1000:.0f} ms."
    if abs(skew_s) <= SKEW_S:
        return Check("clock", Status.OK, detail)
    return Check("clock", Status.PROBLEM, detail, "synchronise the clocks of both (NTP)")


def skew(metrics: str) -> float | None:
    """The largest skew in a page of metrics, or None if the page has none."""
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
