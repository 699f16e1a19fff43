"""Bulk jobs over HTTP: the count, the parts of a job put together, and who may do what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from belfry.api.json.jobs import JobBody, merged, part
from belfry.client.key_ring import KeyRing
from belfry.schedules.bulk import read_bulk
from belfry.schedules.rejections import Rejection
from belfry.store.layout import keys
from belfry.store.layout.jobs import DONE, KEPT_MS, STOPPED, JobRow, encode_job, job_key
from tests.attack.door import OTHER, OWN, Answer, Door
from tests.unit.api.test_two_workers import workers as workers_of_two
from tests.unit.store.test_lookup import NOW_MS

workers = workers_of_two
SPEC: Final = '{"action": "CANCEL", "prefix": "o"}'
ROW: Final = JobRow(SPEC, 1, NOW_MS, (0, 7), homes=2, reason="why")
JOBS: Final = f"/v1/tenants/{OWN}/jobs"
KEYS: Final = [
    {"name": "own", "sha256": "belfry_own", "tenants": [OWN], "role": "schedule"},
    {"name": "reads", "sha256": "belfry_reads", "tenants": [OWN], "role": "read"},
]

PAST: Final = {"range_from": "2026-12-01T00:00:00Z", "range_until": "2026-12-02T00:00:00Z"}


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door(KEYS, opened=True)
    yield door
    door.close()


def asked(door: Door, who: str, method: str, path: str, **body: Any) -> Answer:
    headers = {"authorization": f"Bearer belfry_{who}", "content-type": "application/json"}
    return door(method, path, headers, json.dumps(body).encode() if body else b"")


def parts_of(*rows: JobRow) -> list[dict[str, Any]]:
    return [part("job", row) for row in rows]


def test_counts_of_all_parts_add_up() -> None:
    one = ROW._replace(examined=5, done=2, refused=1, refusals={"not_movable": 1})
    other = ROW._replace(examined=7, done=3, unchanged=1, refused=2, refusals={"not_movable": 2})
    found = merged("demo", parts_of(one, other), NOW_MS)
    counts = ("examined", "matched", "done", "unchanged", "refused")
    assert [found[name] for name in counts] == [12, 9, 5, 1, 3]
    assert found["refusals"] == {"not_movable": 3}
    assert (found["action"], found["filter"], found["reason"]) == ("CANCEL", {"prefix": "o"}, "why")


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([ROW, ROW], "RUNNING"),
        ([ROW, ROW._replace(state=DONE, ended_ms=NOW_MS + 5)], "RUNNING"),
        # The other part has not begun yet.
        ([ROW._replace(state=DONE, ended_ms=NOW_MS + 5)], "RUNNING"),
        ([ROW._replace(state=DONE, ended_ms=NOW_MS + each) for each in (5, 9)], "DONE"),
        (
            [
                ROW._replace(state=DONE, ended_ms=NOW_MS),
                ROW._replace(state=STOPPED, ended_ms=NOW_MS + 9),
            ],
            "STOPPED",
        ),
    ],
)
def test_a_job_has_ended_once_it_has_in_all_partitions(rows: list[JobRow], state: str) -> None:
    found = merged("demo", parts_of(*rows), NOW_MS + 10)
    assert found["state"] == state
    assert (found["ended_at"] is None) is (state == "RUNNING")


def test_a_part_that_was_forgotten_before_the_other_is_not_waited_for() -> None:
    left = ROW._replace(state=DONE, ended_ms=NOW_MS + 5)
    assert merged("demo", parts_of(left), NOW_MS + KEPT_MS)["state"] == "DONE"


def test_a_job_of_a_later_release_is_shown_nevertheless() -> None:
    found = merged("demo", parts_of(ROW._replace(spec='{"action": "FREEZE"}')), NOW_MS)
    assert (found["action"], found["filter"]) == ("UNKNOWN", {})


def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)


@pytest.mark.parametrize("asks", [0, 1])
def test_parts_are_asked_of_whoever_holds_them(workers: list[FastAPI], asks: int) -> None:
    for number, app in enumerate(workers):
        row = ROW._replace(done=number + 1, begun_ms=NOW_MS + number)
        rows = app.state.parts.ready.holdings._rows
        rows.write({keys.named_key(job_key("moved", "j/1")): encode_job(row)})
        rows.write({keys.named_key(job_key("movedx", "other")): encode_job(row)})
    (found,) = client(workers[asks]).get("/v1/tenants/moved/jobs").json()["jobs"]
    assert (found["job"], found["done"], found["partitions"]) == ("j/1", 3, 2)
    assert client(workers[asks]).get("/v1/tenants/moved/jobs/j%2F1").json() == found
    answer = client(workers[asks]).get("/v1/tenants/moved/jobs/none")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_count_goes_through_all_partitions_and_changes_nothing(workers: list[FastAPI]) -> None:
    path, body = "/v1/tenants/moved/jobs", {"action": "CANCEL"}
    first = client(workers[1]).post(path, params={"dry": "true"}, json=body)
    assert (first.status_code, first.json()["matched"], first.json()["sample"]) == (200, 1, ["old"])
    more = {"dry": "true", "cursor": first.json()["cursor"]}
    second = client(workers[1]).post(path, params=more, json=body).json()
    assert (second["matched"], second["sample"], second["cursor"]) == (1, ["new"], None)
    other = client(workers[1]).post(path, params=more, json={**body, "prefix": "n"})
    assert (other.status_code, other.json()["code"]) == (422, "bad_cursor")


def test_a_job_begins_and_its_place_is_told(door: Door) -> None:
    answer = asked(door, "own", "POST", JOBS, job="a/b", action="PAUSE", request_id="r")
    assert answer.status == 201
    assert answer.headers["location"] == f"{JOBS}/a%2Fb"
    (event,) = door.trail.take(10, 0)
    assert (event.action, event.object, event.outcome) == ("bulk.begin", "a/b", "ACCEPTED")
    assert asked(door, "own", "DELETE", f"{JOBS}/a%2Fb").status == 200
    (event,) = door.trail.take(10, 0)
    assert (event.action, event.object) == ("bulk.stop", "a/b")


def test_who_may_read_may_count_and_nothing_else(door: Door) -> None:
    dry = asked(door, "reads", "POST", f"{JOBS}?dry=true", action="CANCEL")
    assert (dry.status, json.loads(dry.body)["matched"]) == (200, 1)
    assert asked(door, "reads", "GET", JOBS).status == 200
    assert not door.trail.take(10, 0)
    assert asked(door, "reads", "POST", JOBS, action="CANCEL").status == 403
    assert asked(door, "reads", "DELETE", f"{JOBS}/a").status == 403
    assert not door.desk.asked
    assert [event.result for event in door.trail.take(10, 0)] == ["REFUSED", "REFUSED"]


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("GET", ""), ("DELETE", "/a")])
def test_nobody_reaches_the_jobs_of_others(door: Door, method: str, path: str) -> None:
    jobs = f"/v1/tenants/{OTHER}/jobs{path}"
    assert asked(door, "own", method, jobs, action="CANCEL").status == 403
    assert asked(door, "own", method, f"{jobs}?dry=true", action="CANCEL").status == 403
    assert OTHER not in door.reached


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"action": "DELETE"}, "invalid"),
        ({"action": "MOVE"}, "bad_bulk"),
        ({"action": "CANCEL", "move_ms": 5}, "bad_bulk"),
        ({"action": "MOVE", "move_ms": 0}, "bad_bulk"),
        ({"action": "CANCEL", "per_second": 0}, "invalid"),
        ({"action": "CANCEL", "prefixes": "a"}, "invalid"),
        ({"action": "CANCEL", "prefix": "\ud800"}, "invalid"),
        ({"action": "CANCEL", "prefix": "a", "schedule_id": "a"}, "bad_bulk"),
        ({"action": "CANCEL", **PAST}, "bad_bulk"),
        ({"action": "BACKFILL"}, "bad_bulk"),
        ({"action": "BACKFILL", "range_from": "2026-12-01T00:00:00Z"}, "bad_bulk"),
        ({"action": "BACKFILL", **PAST, "range_until": PAST["range_from"]}, "bad_bulk"),
        ({"action": "BACKFILL", **PAST, "range_from": 1_700_000_000}, "bad_bulk"),
        ({"action": "CANCEL", "key": "00ff" * 4}, "bad_bulk"),
        ({"action": "REKEY", "key": "00FF" * 4}, "bad_bulk"),
        ({"action": "REKEY", "key": "00ff" * 5}, "invalid"),
    ],
)
def test_what_cannot_be_done_is_refused(door: Door, body: dict[str, Any], code: str) -> None:
    for query in ("", "?dry=true"):
        answer = asked(door, "own", "POST", JOBS + query, **body)
        assert answer.status in (400, 422)
        if code == "bad_bulk":
            assert json.loads(answer.body)["code"] == code
    assert not door.desk.asked


def test_the_count_of_a_backfill_tells_its_occurrences(door: Door) -> None:
    said = {"action": "BACKFILL", **PAST}
    answer = asked(door, "reads", "POST", f"{JOBS}?dry=true", **said)
    found = json.loads(answer.body)
    # What waits there fires once, so it has no occurrence of the past.
    assert (found["matched"], found["occurrences"], found["first"]) == (1, 0, None)


def test_a_backfill_shows_its_range_and_what_it_has_fired() -> None:
    span = '"range_from": 1796083200000, "range_until": 1796169600000'
    spec = f'{{"action": "BACKFILL", "schedule_id": "a", {span}}}'
    found = merged("demo", parts_of(*[ROW._replace(spec=spec, fired=2)] * 2), NOW_MS)
    assert (found["fired"], found["filter"]) == (4, {"schedule_id": "a"})
    assert found["range_from"] == "2026-12-01T00:00:00.000Z"


@pytest.mark.parametrize("given", [None, "00ff" * 4])
def test_a_job_that_encrypts_anew_names_the_newest_key(
    door: Door, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    ring = KeyRing(
        OWN, [b"a secret of thirty-two bytes, new", b"a secret of thirty-two bytes, old"]
    )
    monkeypatch.setattr(door.holdings, "payload_keys", lambda _tenant: ring)
    key = given or ring.newest
    answer = asked(door, "reads", "POST", f"{JOBS}?dry=true", action="REKEY", key=given)
    found = json.loads(answer.body)
    # What waits there is readable, so it is not under any key.
    assert (found["matched"], found["key"], found["sealed_elsewhere"]) == (1, key, 0)
    fields: list[dict[str, Any]] = []
    ask = door.desk.ask

    async def noting(given: dict[str, Any], *more: Any) -> Any:
        fields.append(given)
        return await ask(given, *more)

    monkeypatch.setattr(door.desk, "ask", noting)
    asked(door, "own", "POST", JOBS, action="REKEY", key=given)
    assert json.loads(fields[0]["bulk"])["key"] == key


def test_the_body_and_the_request_say_the_same() -> None:
    body = JobBody.model_validate_json(
        '{"action": "MOVE", "move_ms": -5, "prefix": "é", "due_from": "2030-01-01T00:00:00Z"}'
    )
    found = read_bulk(body.spec().text())
    assert not isinstance(found, Rejection)
    assert found == body.spec()
    assert (found.move_ms, found.prefix, found.due_from) == (-5, "é", 1_893_456_000_000)
