"""Checks of `belfry doctor` on all workers at once, and on the tenants whose events wait there.

The worker that is asked asks the others, so one that hangs shows as well: it is a member of the
group and says nothing.  What is judged here is pure; `…_checks` only ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from belfry.cli.check import Check, Status
from belfry.cli.doctor_mirror import without_following
from belfry.cli.doctor_versions import version_checks
from belfry.cli.failures import CommandError
from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import partitions_text, plain

NAME: Final = "workers"
OVERDUE_S: Final = 30.0
LAG_RECORDS: Final = 100_000
SKEW_S: Final = 0.5
# Tenants that are told of.
MOST: Final = 20
# What is done about a cause; the others pass by themselves, or are as they were asked for.
TO_DO: Final = {
    "output_topic": "create the topic, or let belfry do so (BELFRY_CREATE_TOPICS); belfry acls"
    " worker prints the rights it needs",
    "not_served": "give it a policy (belfry tenant set), or cancel what it has pending",
    "paused": "belfry tenant set TENANT paused=false, once it may go on",
    "rate": "nothing, if it is meant so; else belfry tenant set TENANT max_fires_per_second=…",
    "priority": "add workers, or belfry tenant set TENANT priority=0",
    "queue": "wait: it has more due than fires at once. belfry tenant top shows how it goes on",
    "ack_lock": "look whether its consumers run and acknowledge; belfry schedule locks TENANT names"
    " the fire, and belfry schedule ack acknowledges it by hand",
    "later_release": "update this worker",
    "day_file": "see whether the store of BELFRY_DAY_STORE answers; the worker's log names the"
    " file",
}
BROKEN: Final = frozenset({"output_topic", "not_served", "later_release", "day_file"})


class Expected(NamedTuple):
    """Facts on the worker that is asked, and the cluster's id if Kafka told it.

    `said` names the checks (`worker`, `clock`) that have told already what is wrong with it.
    `zone_data` is the version beside the command.
    """

    app_id: str
    kafka_cluster_id: str | None
    now_s: float
    said: frozenset[str] = frozenset()
    zone_data: str = ""


def cluster_checks(
    session: Session,
    kafka_cluster_id: str | None,
    said: frozenset[str] = frozenset(),
    *,
    passive: bool = False,
) -> Iterator[Check]:
    """One line for each thing that is wrong with some worker, or one that says that nothing is.

    Facts on the asked worker that the checks in `said` have told are not repeated. In a `passive`
    cluster, which follows another one, workers may wait.
    """
    from time import time

    from belfry.schedules.triggers.zones import VERSION

    try:
        found = Remote(session).get("/v1/cluster")
    except CommandError as error:
        yield Check(NAME, Status.SKIPPED, f"The worker does not tell of the others: {error}")
        return
    if passive:
        found = {**found, "workers": [without_following(each) for each in found["workers"]]}
    ours = session.settings.cluster.app_id, kafka_cluster_id
    yield from judge(found, Expected(*ours, time(), said, VERSION))


def judge(found: Mapping[str, Any], expected: Expected) -> Iterator[Check]:
    """What a worker's answer on its cluster means."""
    strange = [*_strange(found, expected)]
    if strange:
        yield from strange
        return
    versions = version_checks(found["workers"], expected.zone_data)
    checks = [*_silent(found), *versions, *_standbys(found)]
    # The one that is asked comes first.
    for number, worker in enumerate(found["workers"]):
        new = worker if number else _not_said(worker, expected.said)
        checks += _one(new, expected.now_s)
    yield from checks
    if not checks and not expected.said:
        workers = len(found["workers"])
        told = "The one worker is" if workers == 1 else f"All {workers} workers are"
        yield Check(NAME, Status.OK, f"{told} of one release, and nothing is late.")


def _strange(found: Mapping[str, Any], expected: Expected) -> Iterator[Check]:
    to_do = "give the --http-url of a worker of this belfry, or the settings of that one"
    if found["app_id"] != expected.app_id:
        detail = (
            f"The worker belongs to the belfry {plain(found['app_id'])}, and these settings are of"
            f" {expected.app_id} (BELFRY_CLUSTER__APP_ID)."
        )
        yield Check(NAME, Status.PROBLEM, detail, to_do)
    theirs, ours = found["kafka_cluster_id"], expected.kafka_cluster_id
    if theirs and ours and theirs != ours:
        detail = (
            f"The worker uses the Kafka cluster {plain(theirs)}, and BELFRY_BOOTSTRAP_SERVERS leads"
            f" to {ours}."
        )
        yield Check(NAME, Status.PROBLEM, detail, to_do)


def _silent(found: Mapping[str, Any]) -> Iterator[Check]:
    urls = {each["worker_id"]: each["http_url"] for each in found["members"]}
    for name in found["silent"]:
        yield Check(
            NAME,
            Status.PROBLEM,
            f"{plain(name)} is in the group and does not answer at {plain(urls.get(name, '?'))}:"
            " it hangs, or that address cannot be reached from the worker that was asked.",
            "look whether its process runs and answers /healthz/live; restarting it is safe. If it"
            " answers there, set its BELFRY_HTTP_ADVERTISED_URL to an address that others reach",
        )


def _standbys(found: Mapping[str, Any]) -> Iterator[Check]:
    members = found["members"]
    stood_by = {number for each in members for number in each["stands_by"]}
    without = sorted({number for each in members for number in each["owns"]} - stood_by)
    # With one worker, the check of the group says so.
    if without and len(members) > 1:
        yield Check(
            NAME,
            Status.RISK,
            f"Nobody stands by for {partitions_text(without)}: if their owner ends, their events"
            " are late by a whole recovery.",
            "wait where the group was shared anew a moment ago; else see BELFRY_STANDBYS",
        )


def _not_said(worker: Mapping[str, Any], said: frozenset[str]) -> Mapping[str, Any]:
    """A worker without the facts that were told already."""
    new = dict(worker)
    if "clock" in said:
        new["clock_skew_seconds"] = 0.0
    if "worker" in said:
        new["problems"] = []
        new["partitions"] = [{**each, "missing": None} for each in worker["partitions"]]
    return new


def _one(worker: Mapping[str, Any], now_s: float) -> Iterator[Check]:
    name = plain(worker["worker_id"])
    if not worker["live"]:
        to_do = "restart it, which is safe"
        yield Check(
            NAME, Status.PROBLEM, f"{name} stands still: one of its threads has ended.", to_do
        )
    for problem in worker["problems"]:
        to_do = "what it waits for is named; its log has the course of it"
        yield Check(NAME, Status.PROBLEM, f"{name}: {plain(problem)}.", to_do)
    for warning in worker.get("warnings", ()):
        to_do = "its page in docs/runbooks says what to look at, and what ends it"
        yield Check(NAME, Status.RISK, f"{name}: {plain(warning)}.", to_do)
    skew_s = worker["clock_skew_seconds"]
    if abs(skew_s) > SKEW_S:
        detail = f"The clock of {name} differs from the broker's by {skew_s * 1000:.0f} ms."
        yield Check(NAME, Status.PROBLEM, detail, "synchronise the clocks of both (NTP)")
    for partition in worker["partitions"]:
        yield from _partition(name, partition, now_s)


def _partition(name: str, each: Mapping[str, Any], now_s: float) -> Iterator[Check]:
    number = each["partition"]
    if each["missing"]:
        detail = f"{name}: partition {number} does not fire: {plain(each['missing'])}."
        to_do = "a recovery that reads needs time; anything else is in the log of that worker"
        yield Check(NAME, Status.PROBLEM, detail, to_do)
    lag = each["ingest_lag_records"] or 0
    if lag > LAG_RECORDS:
        detail = f"{name}: {lag} requests of partition {number} have no verdict yet."
        to_do = "wait, or add workers; belfry tenant top shows who sends them"
        yield Check(NAME, Status.RISK, detail, to_do)
    late_s = _late_s(each, now_s)
    if late_s > OVERDUE_S:
        detail = (
            f"{name}: an event of partition {number} has been due for {late_s:.0f} s, and nothing"
            " that a tenant did explains it."
        )
        to_do = "look at brokers and transactions above, and at the log of that worker"
        yield Check(NAME, Status.PROBLEM, detail, to_do)


def _late_s(each: Mapping[str, Any], now_s: float) -> float:
    if each["waiting_for"] != "firing" or not each["oldest_due_at"]:
        return 0.0
    return now_s - datetime.fromisoformat(each["oldest_due_at"]).timestamp()


def tenant_checks(session: Session) -> Iterator[Check]:
    """Whose events wait, why, since when and how many; all is well if no tenant's events wait."""
    try:
        found = Remote(session).get("/v1/tenants", waiting="true", sort="waiting", limit=MOST)
    except CommandError as error:
        yield Check("tenants", Status.SKIPPED, f"The worker does not tell: {error}")
        return
    yield from tenants_waiting(found)


def tenants_waiting(found: dict[str, Any]) -> Iterator[Check]:
    """What a worker's list of waiting tenants means."""
    waits = [each["wait"] for each in found.get("figures", ()) if each.get("wait")]
    for wait in waits:
        yield _tenant(wait)
    for name in found.get("silent", ()):
        yield Check("tenants", Status.SKIPPED, f"{name} does not answer: its tenants are not seen.")
    if not waits:
        yield Check("tenants", Status.OK, "No tenant's events wait for anything but their time.")


def _tenant(wait: dict[str, Any]) -> Check:
    cause = str(wait["cause"])
    tenant, reason = plain(wait["tenant"]), plain(wait["reason"])
    detail = f"{tenant} waits ({cause}) since {wait['since']}: {reason}."
    if wait["oldest_due_at"]:
        events = "event waits" if wait["waiting"] == 1 else "events wait"
        detail += f" {wait['waiting']} {events}, the oldest was due {wait['oldest_due_at']}."
    else:
        detail += " Nothing of it is due yet."
    status = Status.PROBLEM if cause in BROKEN else Status.RISK
    return Check("tenants", status, detail, TO_DO.get(cause, ""))
