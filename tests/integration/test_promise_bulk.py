"""Workers are killed amid bulk jobs: each schedule that was there has one outcome, and no second.

TRIGGER  ──fires──fires──┬─ kill -9 ─┬──fires──DONE     each schedule fired once, told of once
CANCEL   ──ends──────────┘           └──ends───DONE     each that matched is gone, told of once
BACKFILL ──fires──fires──┘           └──fires──DONE     each occurrence of the range fired once

The tenant is spread, so a job works in several partitions, of two workers.

What was refused is sent again while its command is killed:

redrive  ──sent──sent──┬─ kill -9 ─┬─ the same command ──sent──     each request was sent again once
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from belfry.client import AsyncClient, Client
from belfry.client.kafka import NO_GROUP
from belfry.client.redrive import Redrive
from belfry.client.redrive_source import TooMuchToRedrive
from belfry.client.refired import FiredSource, RefireRange
from belfry.wire.fired import rfc3339
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.reading import lifecycle_of
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import verified
from tests.acceptance.harness.worker import Worker
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TENANT: Final = "wide"
JOBS: Final = f"/v1/tenants/{TENANT}/jobs"
FAR: Final = 4_000_000_000_000
COUNT: Final = 1_500
IDS: Final = [f"{'ab'[number % 2]}/{number:04}" for number in range(COUNT)]


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two workers, and a spread tenant with schedules that are far away."""
    home: Path = tmp_path_factory.mktemp("bulk")
    with Site(kafka, f"bulk-{now_ms()}", home) as site:
        for _ in range(2):
            site.worker().start()
        for worker in site.workers:
            worker.wait_ready()
        policy = {"spread": 4, "lifecycle": "FAILURES"}
        assert Http(site.workers[0])("PUT", f"/v1/tenants/{TENANT}", policy)[0] == 200
        sleep(3)  # Until both workers go by it.
        for name in IDS:
            site.ask_soon(TENANT, name, at=FAR)
        site.producer.flush(60)
        wait_for("schedules", lambda: counted(Http(site.workers[0])) == COUNT, 60)
        yield site


def answered(http: Http, method: str, path: str, body: Any = None) -> Any:
    """The JSON of an answer; partitions that are on their way are asked again."""

    def asked() -> Any:
        status, found, _ = http(method, path, body)
        assert status in (200, 201, 503), (status, found)
        return found if status != 503 else None

    return wait_for(f"an answer to {method} {path}", asked, 60)


def counted(http: Http, **said: Any) -> int:
    """How many schedules a job would match."""
    body = {"action": "CANCEL", **said}
    cursor: str | None = ""
    matched = 0
    while cursor is not None:
        path = f"{JOBS}?dry=true" + (f"&cursor={cursor}" if cursor else "")
        page = answered(http, "POST", path, body)
        matched, cursor = matched + page["matched"], page["cursor"]
    return matched


def killed_amid(
    site: Site, victim: Worker, job: str, least: int, what: str = "matched"
) -> dict[str, Any]:
    """Kill a worker while a job is at work, and start it again; the job once it has ended.

    `what` of the job is between `least` and half of all when it is killed.
    """
    survivor = next(each for each in site.workers if each is not victim)
    http = Http(survivor)
    wait_for(
        "a job at work",
        lambda: least <= answered(http, "GET", f"{JOBS}/{job}")[what] < COUNT // 2,
        60,
    )
    victim.kill()
    victim.start()
    wait_for("the job", lambda: answered(http, "GET", f"{JOBS}/{job}")["state"] == "DONE", 120)
    victim.wait_ready()
    found: dict[str, Any] = answered(http, "GET", f"{JOBS}/{job}")
    return found


def outcomes(site: Site, job: str) -> Counter[tuple[str, str]]:
    """What was told of the schedules that a job touched: id and outcome."""
    events = [lifecycle_of(record) for record in site.read(site.topic("lifecycle"))]
    return Counter(
        (event["schedule_id"], event["outcome"])
        for event in events
        if (event["reason"] or "").startswith(f"bulk job {job}")
    )


def test_a_trigger_fires_each_schedule_once(site: Site) -> None:
    http = Http(site.workers[0])
    begun = answered(
        http, "POST", JOBS, {"job": "fire", "action": "TRIGGER", "per_second": 200, "reason": "x"}
    )
    assert (begun["outcome"], begun["schedule_id"]) == ("ACCEPTED", "fire")
    done = killed_amid(site, site.workers[1], "fire", 100)
    assert (done["matched"], done["done"], done["refused"]) == (COUNT, COUNT, 0)
    assert outcomes(site, "fire") == Counter((name, "TRIGGERED") for name in IDS)
    fired = site.wait_fired(TENANT, COUNT)
    ids = Counter((record.header("belfry-schedule-id") or b"").decode() for record in fired)
    assert ids == Counter(IDS)
    assert len({record.header("belfry-fire-id") for record in fired}) == COUNT


def test_a_cancel_ends_what_it_matches_and_nothing_else(site: Site) -> None:
    with Client(
        site.bootstrap,
        topic_prefix=site.prefix,
        http=f"http://127.0.0.1:{site.workers[1].http_port}",
    ) as client:
        mine = [name for name in IDS if name.startswith("a/")]
        found = client.bulk_preview(TENANT, "cancel", prefix="a/")
        assert found.matched == len(mine)
        verdict = client.bulk(TENANT, "cancel", prefix="a/", job="end", per_second=100)
        assert verdict.outcome == "ACCEPTED"
        done = killed_amid(site, site.workers[0], "end", 50)
        assert (done["matched"], done["done"]) == (len(mine), len(mine))
        assert outcomes(site, "end") == Counter((name, "CANCELLED") for name in mine)
        left = [each.schedule_id for each in client.list(TENANT)]
        assert sorted(left) == sorted(set(IDS) - set(mine))
        job = client.job(TENANT, "end")
        assert job is not None
        assert (job.running, job.done) == (False, len(mine))
        assert [each.job for each in client.jobs(TENANT)] == ["end", "fire"]


def test_the_client_for_asyncio_does_the_same(site: Site) -> None:
    async def moved() -> tuple[int, int | None]:
        http = f"http://127.0.0.1:{site.workers[0].http_port}"
        async with AsyncClient(site.bootstrap, topic_prefix=site.prefix, http=http) as client:
            said: Any = {"prefix": "b/000", "move": "-1h"}
            found = await client.bulk_preview(TENANT, "move", **said)
            verdict = await client.bulk(TENANT, "move", job="move", **said)
            assert verdict.outcome == "ACCEPTED"
            for _ in range(600):
                job = await client.job(TENANT, "move")
                if job is not None and not job.running:
                    break
                await asyncio.sleep(0.1)
            assert job is not None
            assert (job.done, job.matched) == (found.matched, found.matched)
            assert "move" in [each.job for each in await client.jobs(TENANT)]
            assert (await client.stop_job(TENANT, "move")).outcome in ("CANCELLED", "UNCHANGED")
            return found.matched, (await client.get(TENANT, "b/0001")).due_ms

    assert asyncio.run(moved()) == (5, FAR - 3_600_000)


def test_a_job_that_is_stopped_leaves_the_rest(site: Site) -> None:
    http = Http(site.workers[0])
    body = {"job": "slow", "action": "PAUSE", "prefix": "b/", "per_second": 20}
    answered(http, "POST", JOBS, body)
    wait_for("work", lambda: answered(http, "GET", f"{JOBS}/slow")["done"] > 5, 60)
    assert answered(http, "DELETE", f"{JOBS}/slow")["outcome"] == "CANCELLED"
    wait_for("its end", lambda: answered(http, "GET", f"{JOBS}/slow")["state"] == "STOPPED", 60)
    stopped = answered(http, "GET", f"{JOBS}/slow")
    assert 5 < stopped["done"] < COUNT // 2
    assert counted(http, state="PAUSED") == stopped["done"]


def test_a_backfill_fires_each_occurrence_of_the_range_once(site: Site) -> None:
    http, minutes = Http(site.workers[0]), 10 * 60_000
    names = [f"past/{number}" for number in range(5)]
    # The next one is nine minutes away, so that none fires by itself meanwhile.
    next_ms = now_ms() + 9 * 60_000
    for name in names:
        rule = {"kind": "EVERY", "interval_ms": minutes, "start_at": next_ms - 1_000 * minutes}
        site.ask_soon(TENANT, name, **rule)
    site.producer.flush(60)
    span = {"range_from": next_ms - 300 * minutes, "range_until": next_ms}
    body = {"action": "BACKFILL", "prefix": "past/", **span, "per_second": 200, "job": "past"}

    def count() -> list[int]:
        pages = [0, 0]
        cursor: str | None = ""
        while cursor is not None:
            path = f"{JOBS}?dry=true" + (f"&cursor={cursor}" if cursor else "")
            page = answered(http, "POST", path, body)
            pages = [pages[0] + page["matched"], pages[1] + page["occurrences"]]
            cursor = page["cursor"]
        return pages

    wait_for("schedules", lambda: count() == [5, 1_500])
    answered(http, "POST", JOBS, body)
    done = killed_amid(site, site.workers[1], "past", 200, "fired")
    assert (done["matched"], done["done"], done["fired"]) == (5, 5, 1_500)
    assert outcomes(site, "past") == Counter((name, "TRIGGERED") for name in names)
    fired = [each for each in site.fired(TENANT) if each.header("belfry-backfill") == b"past"]
    met = Counter(
        (each.header("belfry-schedule-id"), each.header("belfry-scheduled-at")) for each in fired
    )
    instants = [rfc3339(next_ms - number * minutes) for number in range(1, 301)]
    assert met == Counter((name.encode(), instant) for name in names for instant in instants)
    assert len({each.header("belfry-fire-id") for each in fired}) == 1_500


def redriving(site: Site, *more: str) -> subprocess.Popen[str]:
    """`belfry redrive rejected` of the tenant `full`, for the hour around now."""
    hour = [
        f"--{name}={now_ms() + by}" for name, by in (("from", -3_600_000), ("until", 3_600_000))
    ]
    command = [sys.executable, "-m", "belfry.cli", "redrive", "rejected", "full", *hour, *more]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "app"),
        "BELFRY_BOOTSTRAP_SERVERS": site.bootstrap,
        "BELFRY_CLUSTER__TOPIC_PREFIX": site.prefix,
    }
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def sent_again(site: Site) -> Counter[bytes]:
    """How often each refusal was sent again, by its place."""
    places = [each.header("belfry-origin-redriven") for each in site.read(site.topic("schedules"))]
    return Counter(place for place in places if place is not None)


def test_what_was_refused_is_sent_again_once_though_the_command_is_killed(site: Site) -> None:
    http, count = Http(site.workers[0]), 40
    assert http("PUT", "/v1/tenants/full", {"max_pending": 1})[0] == 200
    sleep(3)  # Until both workers go by it.
    for number in range(count + 1):
        site.ask_soon("full", f"{number}", at=FAR)
    site.producer.flush(60)
    wait_for("refusals", lambda: len(site.rejected()) == count)
    assert http("PUT", "/v1/tenants/full", {"max_pending": 1_000})[0] == 200
    sleep(3)
    dry, _ = redriving(site, "--dry").communicate(timeout=60)
    assert dry == f"{count} requests would be sent (too_many_pending: {count})\n"
    assert not sent_again(site)
    first = redriving(site, "--yes", "--per-second=5")
    wait_for("some that were sent again", lambda: 5 <= sent_again(site).total() < count - 5)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    redriving(site, "--yes", "--per-second=1000").communicate(timeout=60)
    dry, _ = redriving(site, "--dry", "-o", "json").communicate(timeout=60)
    assert f'"redriven":{count}' in dry.replace(" ", "")
    assert sorted(sent_again(site).values()) == [1] * count
    wait_for("schedules", lambda: len(listed(http)) == count + 1)


def listed(http: Http) -> list[Any]:
    """The schedules of the tenant `full`."""
    found: list[Any] = answered(http, "GET", "/v1/tenants/full/schedules?limit=1000")["schedules"]
    return found


def test_events_are_sent_again_once_under_one_name(site: Site) -> None:
    names = [f"{number}" for number in range(40)]
    for name in names:
        site.ask_soon("again", name, at=now_ms(), payload=name.encode())
    site.producer.flush(60)
    originals = {each.header("belfry-fire-id"): each for each in site.wait_fired("again", 40)}
    asked, topic = RefireRange(0, now_ms() + 60_000), site.topic("fired.again")

    def interrupt(_sent: int) -> None:
        raise InterruptedError

    with Client(site.bootstrap, topic_prefix=site.prefix) as client:
        with pytest.raises(InterruptedError):
            client.refire(topic, asked, per_second=10, told=interrupt)
        assert client.refire_preview(topic, asked).redriven == 10
        assert len(client.refire(topic, asked, per_second=1_000, at_most=20).places) == 30
        assert client.refire_preview(topic, asked).redriven == 30
        assert len(client.refire(topic, asked, per_second=1_000).places) == 10
        assert not client.refire(topic, asked).places
        assert len(client.refire_preview(topic, asked._replace(name="other")).places) == 40
    copies = [each for each in site.fired("again") if each.header("belfry-redriven") is not None]
    assert Counter(each.header("belfry-fire-id") for each in copies) == Counter(list(originals))
    for copy in copies:
        first = originals[copy.header("belfry-fire-id")]
        place = f"redrive@{first.offset}".encode()
        assert (copy.partition, copy.key, copy.value) == (first.partition, first.key, first.value)
        assert copy.header("belfry-redriven") == place


def test_a_worker_sends_again_what_it_is_asked_for_over_http(site: Site) -> None:
    http, names = Http(site.workers[0]), {"found", "sent", "left", "redriven"}
    hour = {"range_from": now_ms() - 3_600_000, "range_until": now_ms() + 60_000}
    body = {"what": "fires", **hour, "name": "http", "prefix": "1", "per_second": 1_000}
    path = "/v1/tenants/again/redrives"

    def told(path: str, body: dict[str, Any]) -> dict[str, int]:
        return {
            name: each for name, each in answered(http, "POST", path, body).items() if name in names
        }

    # 1, and 10 to 19.
    assert told(f"{path}?dry=true", body) == {"found": 11, "sent": 0, "left": 11, "redriven": 0}
    assert told(path, body) == {"found": 11, "sent": 11, "left": 0, "redriven": 0}
    http = Http(site.workers[1])
    assert told(path, body) == {"found": 0, "sent": 0, "left": 0, "redriven": 11}
    marks = Counter(
        (each.partition, mark)
        for each in site.fired("again")
        if (mark := each.header("belfry-redriven")) is not None and mark.startswith(b"http@")
    )
    assert list(marks.values()) == [1] * 11
    refusals = {"what": "rejected", **hour, "code": "too_many_pending"}
    found = told("/v1/tenants/full/redrives", refusals)
    assert (found["found"], found["redriven"]) == (0, 40)
    assert told("/v1/redrives?dry=true", refusals) == {**found, "sent": 0}


def test_a_redrive_of_too_much_is_refused(site: Site) -> None:
    with Client(site.bootstrap, topic_prefix=site.prefix) as client:
        source = FiredSource(site.topic("fired.again"), RefireRange(0, now_ms()))
        names = site.topic("redrive"), NO_GROUP
        with pytest.raises(TooMuchToRedrive, match="More than 25 records"):
            Redrive(client.cluster, names, source, 25).count()
        assert Redrive(client.cluster, names, source, 200).count().redriven == 40


def test_a_verification_has_nothing_against_all_of_it_and_finds_what_is_planted(
    site: Site, tmp_path: Path
) -> None:
    state = tmp_path / "verified.db"
    run = verified(site, state=state)
    assert run.code == 0, run.report
    counts = run.report["counts"]
    assert counts["copies"] == 91, "40 marks of refusals, and 51 copies of events"
    assert counts["fires"] >= COUNT
    # What a kill rolls back leaves a gap, behind which nothing is checked for a while.
    assert counts["checked"] > counts["transactions"] / 2
    past = next(each for each in site.fired(TENANT) if each.header("belfry-backfill"))
    copy = next(each for each in site.fired("again") if each.header("belfry-redriven"))
    other = [(k, b"0" * 32 if k == "belfry-fire-id" else v) for k, v in past.headers]
    producer = Producer({"bootstrap.servers": site.bootstrap})
    for record, headers in ((past, past.headers), (past, other), (copy, copy.headers)):
        said: Any = headers
        producer.produce(record.topic, record.value, record.key, record.partition, headers=said)
    assert producer.flush(20) == 0
    found = verified(site, "--grace", "1s", state=state)
    assert found.code == 4
    assert sorted(found.kinds) == ["doubled", "redriven_twice", "unasked"]
