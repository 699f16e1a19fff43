"""HTTP does what Kafka does: create, look at, change and end schedules, without knowing Kafka."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.http import Http, place, schedules
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
FAR = "2060-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    name = f"http-{now_ms()}"
    with Site(kafka, name, tmp_path_factory.mktemp("http"), LIFECYCLE="ALL") as site:
        for _ in range(2):
            site.worker().start()
        for worker in site.workers:
            worker.wait_ready()
        yield site


@pytest.fixture
def both(site: Site) -> list[Http]:
    """Ports of both workers: either answers for every tenant."""
    return [Http(worker, patience_s=10) for worker in site.workers]


@pytest.fixture
def tenant(unique: Callable[[str], str]) -> str:
    return unique("t")


def test_either_worker_tells_of_both(both: list[Http]) -> None:
    for http, other in (both, both[::-1]):
        alone = [each("GET", "/v1/cluster?alone=true")[1]["workers"] for each in (http, other)]
        ids = [workers[0]["worker_id"] for workers in alone]

        def whole(http: Http = http, ids: list[str] = ids) -> bool:
            cluster = http("GET", "/v1/cluster")[1]
            workers = cluster["workers"]
            owned = sorted(p["partition"] for each in workers for p in each["partitions"])
            told = [each["worker_id"] for each in workers]
            return (told, owned, cluster["silent"]) == (ids, list(range(4)), [])

        # Who owns what moves for a moment after the second worker came.
        wait_for("the whole cluster", whole)


def run(site: Site, *words: str) -> tuple[int, str]:
    """A command that knows a worker's port, and no Kafka."""
    where = ["--http-url", f"http://127.0.0.1:{site.workers[0].http_port}"]
    nowhere = ["--bootstrap-servers", "127.0.0.1:1"]
    command = [*belfry(), *words, *where, *nowhere]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_commands_set_policies_without_kafka(site: Site, tenant: str) -> None:
    told_of = partial(run, site, "tenant")
    assert told_of("set", tenant, "max_pending=7", "spread=2")[0] == 0
    assert told_of("set", tenant, "spread=4")[0] == 0
    code, told = told_of("get", tenant, "-o", "json")
    policy = json.loads(told)
    assert (code, policy["max_pending"], policy["spread"]) == (0, 7, 4)
    assert policy["former_spreads"] == [2]
    assert tenant in told_of("list")[1]
    assert told_of("set", tenant, "spread=0")[0] == 1
    # It alone knows where the tenant's schedules live.
    assert told_of("remove", tenant)[0] == 4
    assert told_of("set", tenant, "spread=1", "former_spreads=[]")[0] == 0
    assert told_of("remove", tenant)[0] == 0
    assert told_of("get", tenant)[0] == 3


def test_commands_show_and_change_schedules(site: Site, both: list[Http], tenant: str) -> None:
    target = [{"url": "https://hooks.example.com/belfry"}]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("order/1", {"delay_ms": 3_600_000, "group": "g", "http_targets": target}),
        ("order/2", {"at": FAR, "event_type": "due"}),
        ("other", {"at": FAR}),
    ]
    for name, more in asked:
        body = {"schedule_id": name, "payload_text": "first", **more}
        assert both[1]("POST", schedules(tenant), body)[0] == 201
    assert both[0]("POST", f"{place(tenant, 'order/2')}/pause")[0] == 200

    def ids(*filters: str) -> list[str]:
        code, told = run(site, "schedule", "list", tenant, *filters, "-o", "jsonl")
        assert code == 0, told
        return [json.loads(line)["schedule_id"] for line in told.splitlines()]

    assert ids() == ["order/1", "order/2", "other"]
    assert ids("--prefix", "order/") == ["order/1", "order/2"]
    assert ids("--group", "g") == ["order/1"]
    assert ids("--event-type", "due") == ["order/2"]
    assert ids("--state", "paused") == ["order/2"]
    assert ids("--due-from", "2059-01-01T00:00:00Z") == ["other"]
    assert ids("--limit", "2") == ["order/1", "order/2"]

    before = both[0]("GET", place(tenant, "order/1"))[1]
    code, told = run(site, "schedule", "update", tenant, "order/1", "--payload", "second")
    assert (code, told.split()[0]) == (0, "UPDATED"), told
    code, told = run(site, "schedule", "get", tenant, "order/1", "-o", "json")
    after = json.loads(told)
    assert (code, after["payload_text"], after["version"]) == (0, "second", 2)
    for same in ("due_at", "group", "http_targets"):
        assert after[same] == before[same]
    assert run(site, "schedule", "get", tenant, "nothing")[0] == 3
    assert run(site, "schedule", "update", tenant, "nothing", "--payload", "x")[0] == 3
    code, told = run(site, "top", "--count", "1", "-o", "json")
    assert (code, len(json.loads(told)["workers"])) == (0, 2)


def test_a_schedule_lives_and_ends(both: list[Http], tenant: str) -> None:
    for number, http in enumerate(both):
        body = {"schedule_id": f"order/{number}", "at": FAR, "payload_json": {"n": number}}
        status, verdict, headers = http("POST", schedules(tenant), body)
        assert (status, verdict["outcome"], verdict["version"]) == (201, "ACCEPTED", 1), verdict
        assert headers["location"] == place(tenant, f"order/{number}")
        assert http("POST", schedules(tenant), body)[:2][0] == 200
        other = {**body, "payload_json": "another"}
        status, problem, headers = http("POST", schedules(tenant), other)
        assert (status, problem["outcome"]) == (409, "CONFLICT")
        assert headers["content-type"] == "application/problem+json"
        # A write is seen by the read that follows it, here and there.
        for reader in both:
            status, found, headers = reader("GET", place(tenant, f"order/{number}"))
            assert status == 200, found
            assert found["payload_json"] == {"n": number}
            assert (found["state"], found["due_at"]) == ("PENDING", "2060-01-01T00:00:00.000Z")
            assert headers["etag"] == f'"{found["generation"]}.1"'
        assert http("DELETE", place(tenant, f"order/{number}"))[1]["outcome"] == "CANCELLED"
        assert http("GET", place(tenant, f"order/{number}"))[0] == 404
        assert http("DELETE", place(tenant, f"order/{number}"))[0] == 404


def test_changes_count_only_for_the_expected_version(both: list[Http], tenant: str) -> None:
    here, there = both
    path = place(tenant, "a")
    assert here("PUT", path, {"at": FAR}, if_none_match="*")[0] == 201
    assert here("PUT", path, {"at": FAR}, if_none_match="*")[0] == 412
    status, verdict, headers = there("PUT", path, {"at": FAR, "group": "g"}, if_match='"1"')
    assert (status, verdict["outcome"]) == (200, "UPDATED")
    assert headers["etag"] == f'"{verdict["generation"]}.2"'
    status, problem, _ = here("PUT", path, {"at": FAR}, if_match='"1"')
    assert (status, problem["code"], problem["version"]) == (412, "wrong_version", 2)
    assert here("PUT", path, {"at": FAR}, if_match="x")[0] == 422
    assert there("DELETE", path, if_match='"1"')[0] == 412
    old = here("GET", path)[2]["etag"]
    assert old == headers["etag"]
    assert there("DELETE", path, if_match=old)[0] == 200
    # A successor of the same version is another schedule.
    assert here("PUT", path, {"at": FAR})[0] == 201
    assert here("PUT", path, {"at": FAR, "group": "g"})[2]["etag"] != old
    status, problem, _ = there("DELETE", path, if_match=old)
    assert (status, problem["code"]) == (412, "wrong_generation")
    assert there("DELETE", path, if_match='"2"')[0] == 200


def test_a_request_is_carried_out_once(both: list[Http], tenant: str) -> None:
    body = {"schedule_id": "a", "at": FAR, "request_id": "r"}
    answers = [http("POST", schedules(tenant), body) for http in both]
    assert [status for status, _, _ in answers] == [201, 201]
    assert [verdict["outcome"] for _, verdict, _ in answers] == ["ACCEPTED", "DUPLICATE"]


def test_a_used_id_makes_no_other_request_look_done(both: list[Http], tenant: str) -> None:
    here, there = both
    assert (
        here("POST", schedules(tenant), {"schedule_id": "a", "at": FAR, "request_id": "r"})[0]
        == 201
    )
    got, problem, _ = there(
        "POST", schedules(tenant), {"schedule_id": "b", "at": FAR, "request_id": "r"}
    )
    assert (got, problem["code"]) == (409, "request_id_reused")
    assert there("GET", f"{schedules(tenant)}/b")[0] == 404
    got, problem, _ = here("DELETE", f"{schedules(tenant)}/a?request_id=r", if_match='"1"')
    assert (got, problem["code"]) == (409, "request_id_reused")
    assert here("GET", f"{schedules(tenant)}/a")[0] == 200


def test_what_is_refused_says_why(both: list[Http], tenant: str) -> None:
    http = both[0]
    for body, status, word in [
        ({"schedule_id": "a", "at": 1_796_115_600}, 422, "milliseconds"),
        ({"schedule_id": "a"}, 422, "exactly one of"),
        ({"schedule_id": "a", "at": FAR, "delay_ms": 1}, 422, "exactly one of"),
        ({"schedule_id": "a", "at": FAR, "paylod": "x"}, 422, "paylod"),
        ({"schedule_id": "a", "at": FAR, "payload_base64": "%"}, 422, "base64"),
        ({"schedule_id": "a\n", "at": FAR}, 422, "control"),
        ({"schedule_id": "a", "at": "2060-01-01T00:00:00"}, 422, "offset"),
        (b"{", 400, "JSON"),
        (b"x" * 8_000_000, 413, "larger"),
    ]:
        got, problem, _ = http("POST", schedules(tenant), body)
        assert (got, word in problem["detail"]) == (status, True), problem
    assert http("POST", schedules(tenant), b"a=1", kind="text/plain")[0] == 415
    assert http("POST", schedules("a..b"), {"schedule_id": "a", "at": FAR})[0] == 422
    assert http("GET", schedules(tenant) + "?limt=1")[0] == 422
    assert http("GET", schedules(tenant), origin="http://evil.example")[0] == 403


def test_many_at_once_are_judged_one_by_one(both: list[Http], tenant: str) -> None:
    given = [{"schedule_id": f"b/{number:04}", "at": FAR} for number in range(500)]
    given[7]["at"] = "soon"
    given[8] = given[9]
    body = b"\n".join(json.dumps(line).encode() for line in given)
    status, raw, _ = both[1]("POST", schedules(tenant), body, kind="application/x-ndjson")
    answers = [json.loads(line) for line in raw.splitlines()]
    assert (status, len(answers)) == (200, 500)
    assert answers[7]["status"] == 422
    assert sorted([answers[8]["status"], answers[9]["status"]]) == [200, 201]
    assert {answer["status"] for answer in answers[10:]} == {201}
    found = []
    cursor: str | None = ""
    while cursor is not None:
        page = both[0]("GET", f"{schedules(tenant)}?prefix=b/&limit=200{cursor}")[1]
        found += [each["schedule_id"] for each in page["schedules"]]
        cursor = page["cursor"] and f"&cursor={page['cursor']}"
    assert found == [f"b/{number:04}" for number in range(500) if number not in (7, 8)]
    due = f"{schedules(tenant)}?due_from={FAR}&due_until=2060-01-01T00:01:00Z&limit=1000"
    assert len(both[1]("GET", due)[1]["schedules"]) == 498
    (count,) = both[1]("GET", f"/v1/tenants/{tenant}/counts?due_from={FAR}")[1]["counts"]
    at = "2060-01-01T00:00:00.000Z"
    assert count == {"minute": at, "pending": 498, "first_due_at": at, "last_due_at": at}
    other = page_of_another_question(both[0], tenant)
    assert other == 422


def page_of_another_question(http: Http, tenant: str) -> int:
    page = http("GET", f"{schedules(tenant)}?limit=1")[1]
    return http("GET", f"{schedules(tenant)}?limit=1&prefix=x&cursor={page['cursor']}")[0]


def test_pause_resume_trigger_and_a_dry_run(both: list[Http], site: Site, tenant: str) -> None:
    path = place(tenant, "a/pause")
    here, there = both
    assert here("PUT", path, {"at": FAR, "payload_text": "p", "key_text": "k"})[0] == 201
    assert here("POST", f"{path}/pause")[1]["outcome"] == "PAUSED"
    assert there("GET", path)[1]["state"] == "PAUSED"
    assert there("POST", f"{path}/resume")[1]["outcome"] == "RESUMED"
    assert here("POST", f"{path}/ack?fire_id={'0f' * 16}")[1]["outcome"] == "UNCHANGED"
    assert there("POST", f"{path}/ack?fire_id=last")[1]["code"] == "bad_fire_id"
    assert there("POST", f"{path}/ack")[0] == 422
    for http in both:
        status, copy, _ = http("POST", f"{path}/dry-run")
        assert status == 200, copy
    assert here("GET", path)[1]["version"] == 1
    status, verdict, _ = there("POST", f"{path}/trigger")
    assert (status, verdict["outcome"]) == (200, "TRIGGERED")
    fired = site.wait_fired(tenant, 3)
    marks = [record.header("belfry-dry-run") for record in fired]
    assert sorted(marks, key=str) == [None, b"true", b"true"]
    assert {record.value for record in fired} == {b"p"}
    assert {record.key for record in fired} == {b"k"}
    assert here("POST", f"{place(tenant, 'none')}/dry-run")[0] == 404
    assert here("POST", f"{place(tenant, 'none')}/pause")[0] == 404


def twelve_events(http: Http, tenant: str) -> list[Any]:
    """A tenant's history, once it has twelve events."""
    events: list[Any] = http("GET", f"/v1/tenants/{tenant}/history")[1]["events"]
    return events if len(events) == 12 else []


def test_histories_and_statistics_are_gathered(both: list[Http], tenant: str) -> None:
    for number in range(6):
        path = place(tenant, f"s/{number}")
        assert both[number % 2]("PUT", path, {"delay_ms": 10})[0] == 201
    wait_for("a fire", lambda: both[0]("GET", place(tenant, "s/5"))[1].get("state") == "FIRED")
    for http in both:
        events = wait_for("the history", partial(twelve_events, http, tenant))
        assert [event["at"] for event in events] == sorted(event["at"] for event in events)
        one = http("GET", f"{place(tenant, 's/1')}/history")[1]["events"]
        assert [event["outcome"] for event in one] == ["ACCEPTED", "FIRED"]
        first = http("GET", f"/v1/tenants/{tenant}/history?limit=5")[1]
        second = http("GET", f"/v1/tenants/{tenant}/history?limit=50&cursor={first['cursor']}")[1]
        assert first["events"] + second["events"] == events
        told = http("GET", f"/v1/tenants/{tenant}/statistics")[1]
        assert (told["requests"], told["fires"], told["success_rate"]) == (6, 6, 1.0)
        assert told["share_within_1s"] is not None


def test_why_tells_of_fires_that_no_history_has(both: list[Http], site: Site, tenant: str) -> None:
    assert run(site, "tenant", "set", tenant, "lifecycle=FAILURES")[0] == 0
    path = place(tenant, "tick/1")
    assert both[0]("PUT", path, {"interval_ms": 1_000})[0] == 201

    def fired() -> Any:
        found = both[1]("GET", f"{path}?last=10")[1]
        return found if found["fires"]["fired"] >= 2 else None

    counted = wait_for("two fires", fired)["fires"]
    came_due = counted["fired"] + counted["missed"]
    assert counted["success_rate"] == round(counted["fired"] / came_due, 6)
    # Whoever is asked, and whoever has fired: hours know of it though no record does.
    for http in both:
        hours = http("GET", f"/v1/tenants/{tenant}/statistics")[1]
        assert hours["fires"] >= counted["fired"]
        assert hours["success_rate"] == round(
            hours["fires"] / (hours["fires"] + hours["missed"]), 6
        )
        assert hours["share_within_1s"] is not None
        assert hours["fires_since"] is None

    def told() -> Any:
        code, said = run(site, "why", tenant, "tick/1")
        return said if code == 0 and "ACCEPTED" in said else None

    said = wait_for("the history", told).splitlines()
    assert "Its request: partition " in said[0]
    assert " fired" in said[0]
    assert " ACCEPTED " in said[1]
    assert sum(" FIRED " in line for line in said) >= 2
    newest = both[1]("GET", f"{path}/history?order=newest&limit=1")[1]["events"]
    assert [each["outcome"] for each in newest] == ["ACCEPTED"]


def test_no_wait_means_kafka_has_it(both: list[Http], tenant: str) -> None:
    status, verdict, _ = both[0](
        "POST", f"{schedules(tenant)}?wait=none", {"schedule_id": "a", "at": FAR}
    )
    assert (status, verdict["outcome"]) == (202, None)
    assert verdict["source_offset"] >= 0
    wait_for("the schedule", lambda: both[1]("GET", place(tenant, "a"))[0] == 200)


def test_policies_are_set_and_followed(both: list[Http], tenant: str) -> None:
    here, there = both
    path = f"/v1/tenants/{tenant}"
    assert here("GET", path)[0] == 404
    status, policy, _ = here("PUT", path, {"max_pending": 7, "delivery": "ENVELOPE"})
    assert (status, policy["max_pending"], policy["priority"]) == (200, 7, 0), policy
    wait_for("the policy there", lambda: there("GET", path)[0] == 200)
    assert tenant in there("GET", "/v1/tenants?limit=1000")[1]["tenants"]
    assert here("PUT", path, {"max_pending": -1})[0] == 422
    assert here("PUT", path, {"max_pendin": 1})[0] == 422
    assert there("DELETE", path)[0] == 204
    assert there("GET", path)[0] == 404
