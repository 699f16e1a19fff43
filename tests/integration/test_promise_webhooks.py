"""Fired events reach their HTTP targets, each with one end, whatever happens on the way."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from standardwebhooks.webhooks import Webhook

from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.delivery.answers import Again
from belfry.delivery.follow_ups import Places, retry
from belfry.delivery.work import Work
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import DeliveryState
from belfry.tenants.policy import TenantPolicy
from belfry.wire import framing
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.worker_keys import Purpose, first, keys_of
from tests.acceptance.harness import commands
from tests.acceptance.harness.delivered import wait_ends
from tests.acceptance.harness.host_breaks import broken_for_both
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.receiver import Received, Receiver
from tests.acceptance.harness.removal import lose_what_waits
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

KILLS: Final = int(os.environ.get("KILLS", "3"))
WORKERS: Final = "what the workers share"
SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
API_KEY: Final = "sk-0123456789abcdef"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry whose worker fires and delivers, to this machine as well."""
    name = f"hooks-{uuid.uuid4().hex[:8]}"
    secrets = tmp_path_factory.mktemp("secrets")
    (secrets / "api-key").write_text(API_KEY)
    with Site(
        kafka,
        name,
        tmp_path_factory.mktemp("hooks"),
        SECRETS_DIR=str(secrets),
        LIFECYCLE="ALL",
        WEBHOOK_SECRETS=json.dumps({"main": SECRET}),
        WEBHOOK_PRIVATE_NETWORKS='["127.0.0.0/8"]',
        # Requests that workers write, retries among them, are signed and have to be.
        HTTP_WORKER_SECRET=WORKERS,
    ) as site:
        site.worker().start().wait_ready()
        yield site


def hook(url: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "secret_ref": "main", "timeout_ms": 10_000, **more}


def undelivered(site: Site) -> list[Record]:
    return site.read(site.topic("undelivered"))


def test_every_way_to_answer_ends_in_one_outcome(site: Site, receiver: Receiver) -> None:
    expected = {
        "ok": ("/ok", "DELIVERED", 1, 1),
        "flaky": ("/flaky/1", "DELIVERED", 2, 2),
        "later": ("/later/1", "DELIVERED", 2, 2),
        "gone": ("/status/410", "FAILED", 1, 1),
        "broken": ("/status/500", "FAILED", 2, 2),
        "hangs": ("/hang", "FAILED", 2, 2),
        "drops": ("/drop", "FAILED", 2, 2),
        "moved": ("/redirect", "FAILED", 1, 1),
        "metadata": ("http://169.254.169.254/", "FAILED", 1, 0),
    }
    for name, (path, *_) in expected.items():
        url = path if path.startswith("http:") else receiver.url(path)
        # Only where nothing answers is the time-out short: a busy machine answers late.
        target = hook(url, max_attempts=2, timeout_ms=1_000 if name == "hangs" else 10_000)
        site.ask("all", name, at=now_ms(), payload=b'{"n":1}', http_targets=[target])
    found = wait_ends(site, "all", len(expected))
    for name, (path, outcome, attempt, posts) in expected.items():
        (end,) = found[name]
        assert (end["outcome"], end["attempt"]) == (outcome, attempt), (name, end)
        got = receiver.at(path)
        assert len(got) == posts, name
        assert {each.id for each in got} <= {end["fire_id"]}
        assert [each.headers["belfry-attempt"] for each in got] == ["1", "2"][:posts]
    for one in receiver.received:
        assert Webhook(SECRET).verify(one.body, one.headers) == {"n": 1}
    # All of them fired onto the topic as well, and what failed is kept with its reason.
    assert len(site.wait_fired("all", len(expected))) == len(expected)
    told = (worker.get("/metrics")[1] for worker in site.workers)
    arrived = 'belfry_tenant_delivered_total{tenant="all"} 3.0'
    assert any(arrived in page.splitlines() for page in told)
    letters = {record.header("belfry-error-code") for record in undelivered(site)}
    assert letters == {b"http_status", b"timeout", b"connection", b"redirect", b"address_refused"}


def test_the_last_fires_tell_attempts_at_the_quietest_level(site: Site, receiver: Receiver) -> None:
    told(site, "PUT", "quiet", {"lifecycle": "FAILURES"})
    wait_for("the policy", lambda: told(site, "GET", "quiet").get("lifecycle") == "FAILURES")
    urls = [receiver.url(path) for path in ("/ok", "/flaky/1/q", "/status/410")]
    targets = [hook(url, max_attempts=2) for url in urls]
    site.ask("quiet", "once", at=now_ms(), http_targets=targets)
    wait_ends(site, "quiet", 2)

    def shown() -> set[tuple[str, int, str]]:
        (fire,) = told(site, "GET", "quiet/schedules/once?last=10")["last_fires"]
        return {(each["outcome"], each["attempt"], each["target"]) for each in fire["deliveries"]}

    # What arrived at once is not told.
    both = {("DELIVERED", 2, urls[1]), ("FAILED", 1, urls[2])}
    wait_for("both in the history", lambda: shown() == both)


def test_what_was_given_up_is_listed_and_delivered_again(site: Site, receiver: Receiver) -> None:
    path = "/flaky/1"
    for name in ("one", "two"):
        target = hook(receiver.url(f"{path}/{name}"), max_attempts=1)
        site.ask("late", name, at=now_ms(), payload=b"p", http_targets=[target])
    wait_ends(site, "late", 2)
    (one,) = receiver.at(f"{path}/one")
    listed = deliveries(site, "list", "late", "--output", "jsonl").splitlines()
    assert {json.loads(line)["code"] for line in listed} == {"http_status"}
    assert {json.loads(line)["schedule_id"] for line in listed} == {"one", "two"}
    assert "replayed 1" in deliveries(site, "replay", "late", "--fire-id", one.id)
    wait_ends(site, "late", 3)
    first, again = receiver.at(f"{path}/one")
    assert (first.id, first.body) == (again.id, again.body)
    assert len(receiver.at(f"{path}/two")) == 1
    # The same over HTTP: by the place of the letter.
    letters = told(site, "GET", "late/dead-letters")["deliveries"]
    assert {each["schedule_id"] for each in letters} == {"one", "two"}
    (two,) = [each for each in letters if each["schedule_id"] == "two"]
    assert (two["state"], two["attempt"], two["code"]) == ("given_up", 1, "http_status")
    assert told(site, "POST", f"late/dead-letters/{two['id']}/replay") == {"replayed": 1}
    wait_ends(site, "late", 4)
    assert len(receiver.at(f"{path}/two")) == 2
    for place in ("all/dead-letters/" + two["id"], "late/dead-letters/0-999999"):
        assert told(site, "POST", f"{place}/replay")["status"] == 404
    assert told(site, "GET", "late/deliveries")["deliveries"] == []


def told(site: Site, method: str, path: str, body: Any = None) -> Any:
    """What the worker answers about tenants."""
    connection = http.client.HTTPConnection("127.0.0.1", site.workers[0].http_port, timeout=30)
    sent = None if body is None else json.dumps(body)
    with closing(connection):
        connection.request(
            method, f"/v1/tenants/{path}", sent, {"content-type": "application/json"}
        )
        return json.loads(connection.getresponse().read())


def deliveries(site: Site, *words: str) -> str:
    """What ``belfry deliveries …`` prints."""
    return belfry(site, "deliveries", *words)


def belfry(site: Site, *words: str, code: int | None = 0) -> str:
    """What a command prints, which ends with this exit code; None: with any."""
    prefix = {"BELFRY_CLUSTER__TOPIC_PREFIX": site.prefix, "NO_COLOR": "1"}
    prefix["BELFRY_CLUSTER__APP_ID"] = site.name
    prefix["BELFRY_HTTP_WORKER_SECRET"] = WORKERS
    where = ["--bootstrap-servers", site.bootstrap]
    answer = subprocess.run(
        [*commands.belfry(), *words, *where],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **prefix},
    )  # fmt: skip
    assert code in (None, answer.returncode), answer.stderr
    return answer.stdout


@pytest.mark.timeout(300)
def test_what_has_no_end_is_found_and_delivered_again(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> None:
    name = f"open-{uuid.uuid4().hex[:8]}"
    settings = {"LIFECYCLE": "ALL", "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]'}
    settings["HTTP_WORKER_SECRET"] = WORKERS
    with Site(kafka, name, tmp_path_factory.mktemp("open"), **settings) as site:
        fires = site.worker(ROLE="schedule").start().wait_ready()
        for schedule, path in (("done", "/ok"), ("later", "/later/600")):
            target = {"url": receiver.url(path)}
            site.ask("demo", schedule, at=now_ms(), http_targets=[target])
        site.wait_fired("demo", 2)
        assert unended(site) == {"done": "waiting", "later": "waiting"}
        assert states(site) == unended(site)
        assert unended(site, "--older", "1h") == {}
        assert nobody_delivers(site)
        delivers = site.worker(ROLE="deliver").start().wait_ready()
        wait_for("a retry", lambda: unended(site) == {"later": "retrying"}, 30)
        assert not nobody_delivers(site)
        assert states(site) == unended(site)
        replayed = deliveries(site, "replay", "demo", "--all", "--open", "--older", "0s")
        assert "replayed 1" in replayed
        wait_ends(site, "demo", 2)
        assert unended(site) == {}
        lose_what_waits(site, delivers, receiver)
        host = urlsplit(receiver.url("/")).netloc
        with broken_for_both(host, fires, delivers):
            site.ask("demo", "held", at=now_ms(), http_targets=[{"url": receiver.url("/held")}])
            wait_for("a retry", lambda: unended(site).get("held") == "retrying", 30)
        site.ask("demo", "free", at=now_ms(), http_targets=[{"url": receiver.url("/free")}])
        wait_for("a post", lambda: receiver.at("/free"), 30)
        assert receiver.at("/held") == []


def nobody_delivers(site: Site) -> bool:
    """Whether `belfry doctor` says so."""
    return "Nobody delivers: up to " in belfry(site, "doctor", code=None)


def states(site: Site) -> dict[str, str]:
    """The deliveries without an end that HTTP shows, by schedule."""
    found = told(site, "GET", "demo/deliveries")["deliveries"]
    return {each["schedule_id"]: each["state"] for each in found}


def unended(site: Site, *words: str) -> dict[str, str]:
    """The deliveries that ``belfry deliveries list --open`` shows, by schedule."""
    how = words or ("--older", "0s")
    lines = deliveries(site, "list", "--open", *how, "--output", "jsonl").splitlines()
    return {each["schedule_id"]: each["code"] for each in map(json.loads, lines)}


def test_strategies_and_groups(site: Site, receiver: Receiver) -> None:
    first = {"strategy": "FIRST_AVAILABLE"}
    two = [hook(receiver.url("/status/404/a"), **first), hook(receiver.url("/ok/b"), **first)]
    site.ask("ways", "first", at=now_ms(), http_targets=two)
    turn = {"strategy": "ROUND_ROBIN"}
    pair = [hook(receiver.url("/ok/c"), **turn), hook(receiver.url("/ok/d"), **turn)]
    site.ask("ways", "turns", kind="EVERY", interval_ms=1, max_fires=6, http_targets=pair)
    soon = now_ms() + 300
    for number in range(20):
        target = [hook(receiver.url("/ok/group"))]
        body = str(number).encode()
        site.ask("ways", f"g/{number}", at=soon, payload=body, group="g", http_targets=target)
    wait_ends(site, "ways", 27)
    assert len(receiver.at("/status/404/a")) == len(receiver.at("/ok/b")) == 1
    assert len(receiver.at("/ok/c")) == len(receiver.at("/ok/d")) == 3
    assert [int(each.body) for each in receiver.at("/ok/group")] == list(range(20))


def test_a_serial_group_waits_for_each_delivery(site: Site, receiver: Receiver) -> None:
    soon = now_ms() + 300
    for number in range(3):
        # The first attempt fails, so the others overtake it where nothing waits.
        path = "/flaky/1/serial" if number == 0 else "/ok/serial"
        fields = {"payload": b"%d" % number, "http_targets": [hook(receiver.url(path))]}
        site.ask("serial", f"s{number}", at=soon + number, group="g", serial=True, **fields)
    wait_ends(site, "serial", 3)
    bodies = [each.body for each in receiver.received if each.path.endswith("/serial")]
    assert bodies == [b"0", b"0", b"1", b"2"]


def test_a_record_that_is_no_delivery_is_put_aside(site: Site, receiver: Receiver) -> None:
    for partition in range(4):
        site.producer.produce(site.topic("deliveries"), b"garbage", partition=partition)
    assert site.producer.flush(20) == 0
    site.ask("after", "ok", at=now_ms(), http_targets=[hook(receiver.url("/ok"))])
    wait_ends(site, "after", 1)

    def aside() -> list[Record]:
        code = b"not_a_delivery"
        found = [r for r in undelivered(site) if r.header("belfry-error-code") == code]
        return found if len(found) >= 4 else []

    assert {record.value for record in wait_for("four letters", aside)} == {b"garbage"}


def test_a_delivery_whose_retry_is_refused_is_given_up_by_itself(site: Site) -> None:
    """Nobody lists or replays anything: a dispatcher reads what workers refuse."""
    event = FiredEvent("lost", "a", "f" * 32, 1, 0, now_ms(), now_ms(), now_ms())
    value = framing.single_object("FiredEvent") + encode_fired(event)
    state = DeliveryState((HttpTarget("http://one.example.com/"),), attempt=2, tell=True)
    key = first(keys_of([WORKERS.encode()], Purpose.DELIVERIES))
    head = framing.single_object("ScheduleRequest")
    places = Places(site.topic("schedules"), "", "", head, b"", retry_key=key)
    # No instant is that far away, so a worker refuses it.
    asked = retry(Work(b"lost/a", value, event, [], state), Again(2**62, state), places)
    assert asked is not None
    headers: Any = asked.headers
    site.producer.produce(asked.topic, asked.value, asked.key, headers=headers)
    assert site.producer.flush(20) == 0
    (end,) = wait_ends(site, "lost", 1)["a"]
    assert (end["outcome"], end["code"], end["attempt"]) == ("FAILED", "retry_refused", 2)
    (letter,) = [each for each in undelivered(site) if each.value == value]
    assert letter.header("belfry-error-code") == b"retry_refused"
    pages = [worker.get("/metrics")[1] for worker in site.workers]
    assert any('belfry_deliveries_total{outcome="SETTLED"} 1.0' in page for page in pages)


@pytest.mark.timeout(120 + 40 * KILLS)
def test_a_dispatcher_that_is_killed_loses_nothing_and_keeps_ids(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> None:
    name, kills, events = f"kills-{uuid.uuid4().hex[:8]}", KILLS, 60 * KILLS
    settings = {
        "LIFECYCLE": "ALL",
        "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]',
        "WEBHOOK_SECRETS": json.dumps({"main": SECRET}),
    }
    with Site(kafka, name, tmp_path_factory.mktemp("kills"), **settings) as site:
        site.worker(ROLE="schedule").start().wait_ready()
        deliverer = site.worker(ROLE="deliver").start().wait_ready()
        for kill in range(kills):
            for number in range(events // kills):
                path = "/flaky/1" if number % 4 == 0 else "/ok"
                target = [hook(receiver.url(path))]
                site.ask("demo", f"{kill}/{number}", at=now_ms(), http_targets=target)
            site.producer.flush(20)
            seen = len(receiver.received) + 5
            wait_for("some posts", partial(more_than, receiver, seen), 40)
            deliverer.kill()
            deliverer.start()
        found = wait_ends(site, "demo", events)
        assert Counter(len(each) for each in found.values()) == {1: events}
        assert {end["outcome"] for each in found.values() for end in each} == {"DELIVERED"}
        # Each event arrived, under one id; who remembers ids sees each once.
        assert len(distinct(receiver.received)) == events
        assert deliverer.stop() == 0
    taken = Counter(each.id for each in receiver.received if each.path == "/ok")
    ids, repeats = len(distinct(receiver.received)), sum(taken.values()) - len(taken)
    posts = len(receiver.received)
    sys.stdout.write(
        f"\n{kills} kills, {events} events, {posts} posts, {ids} ids, {repeats} repeats\n"
    )


def more_than(receiver: Receiver, number: int) -> bool:
    return len(receiver.received) > number


def distinct(received: list[Received]) -> set[str]:
    return {each.id for each in received}


def test_a_secret_of_a_header_reaches_its_host_and_lies_in_no_topic(
    site: Site, receiver: Receiver
) -> None:
    """Also in a retry, which is a schedule; and another tenant that names it gets nothing."""
    refs, hosts = ("file:api-key",), ("127.0.0.1",)
    policies = TenantPolicies(Cluster(site.bootstrap), site.prefix)
    policies.put(
        TenantPolicy("keyed", lifecycle="ALL", allowed_hosts=hosts, secret_refs=refs),
        TenantPolicy("thief", lifecycle="ALL", allowed_hosts=hosts),
    )
    headers = [{"name": "authorization", "value": "Bearer ${file:api-key}"}]
    target = hook(receiver.url("/flaky/1"), headers=headers, secret_ref=None)

    tries = count()

    def taken() -> bool:
        # A policy is in effect within two seconds; until then the request is refused.
        name = f"k{next(tries)}"
        site.ask("keyed", "a", at=now_ms(), payload=b"p", http_targets=[target], request_id=name)
        return bool(site.outcome(name)["outcome"] == "ACCEPTED")

    wait_for("the policy", taken)
    site.ask("thief", "b", at=now_ms(), payload=b"p", http_targets=[target], request_id="t")
    assert site.outcome("t")["code"] == "target_not_allowed"
    (end,) = wait_ends(site, "keyed", 1)["a"]
    assert (end["outcome"], end["attempt"]) == ("DELIVERED", 2)
    assert [each.headers["authorization"] for each in receiver.received] == [
        f"Bearer {API_KEY}"
    ] * 2
    for short in ("schedules", "changelog", "deliveries", "lifecycle", "undelivered", "tenants"):
        for record in site.read(site.topic(short)):
            assert API_KEY.encode() not in (record.value or b"")
            assert API_KEY not in str(record.headers)
