"""Hosts of webhooks over HTTP: which are not posted to, and who may break and close one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.routes.app import create_app
from belfry.api.workers.host_breaks import HostBreak, HostBreaks
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import PeerUnreachable
from belfry.api.workers.shared_breaks import SharedBreaks
from belfry.api.workers.view import Posting
from belfry.balance.assignment_map import AssignedMember, AssignmentMap
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker
from tests.unit.api.test_policies import principals
from tests.unit.api.test_shared_breaks import KafkaNotes

PATH = "/v1/delivery-hosts"
NOW_MS = 5_000
SILENT = {
    "host": "hooks.example:8443", "worker_id": "worker-1", "state": "silent",
    "since": "1970-01-01T00:00:01.000Z", "tried_at": "1970-01-01T00:00:02.000Z",
    "next_try_at": "1970-01-01T00:00:09.000Z", "reason": "no answer", "by": None,
}  # fmt: skip


class Door:
    """An application, and who asks it."""

    def __init__(self) -> None:
        self.view = FakeWorker()
        given = (
            Principal("platform", ("*",), Role.OPERATE),
            Principal("reads", ("*",), Role.READ),
            Principal("some", ("shop",), Role.OPERATE),
        )
        self.parts = ApiDependencies(principals(*given), (), lambda: float(NOW_MS))
        self.kafka = KafkaNotes()
        self.parts._shared_breaks = self.beside_it(self.parts.breaks)
        app = create_app(self.view, Metrics(CollectorRegistry()), (), self.parts)
        self.client = TestClient(app, base_url="http://127.0.0.1:8700")
        self.asked: list[tuple[str, Target]] = []

    def __call__(self, method: str, path: str, who: str = "platform") -> Any:
        return self.client.request(method, path, headers={"authorization": f"Bearer {who}"})

    def beside_it(self, breaks: HostBreaks) -> SharedBreaks:
        """What keeps breaks of a process in the same Kafka, without its thread."""
        return SharedBreaks(breaks, self.kafka, 2, lambda: float(NOW_MS))

    def broken_elsewhere(self) -> list[str]:
        """Hosts that another process finds broken."""
        other = HostBreaks()
        self.beside_it(other).settle()
        return [each.host for each in other.all(NOW_MS)]

    def beside(self, monkeypatch: pytest.MonkeyPatch, **others: Any) -> None:
        """Workers beside this one, with what they answer: None for nothing."""
        entries = [AssignedMember(name, http=f"http://{name}") for name in others]
        monkeypatch.setattr(self.view, "assignment_map", lambda: AssignmentMap(tuple(entries)))

        async def ask(url: str, target: Target, _principal: Principal, _headers: Any) -> Response:
            self.asked.append((url, target))
            told = others[url.removeprefix("http://")]
            if told is None:
                raise PeerUnreachable(url)
            return Response(orjson.dumps(told), 200)

        monkeypatch.setattr(self.parts.peers, "ask", ask)


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    with door.client:
        yield door


def test_the_hosts_of_all_workers_are_listed_and_who_is_silent_is_named(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**SILENT, "host": "a.example", "worker_id": "two"}
    door.beside(monkeypatch, two={"hosts": [other], "workers": ["two"], "silent": []}, three=None)
    told = door("GET", PATH, "reads").json()
    expected = {"hosts": [other, SILENT], "workers": ["worker-1", "two"], "silent": ["three"]}
    assert told == {**expected, "remembered": []}
    assert {target.query for _, target in door.asked} == {"alone=true"}


def test_a_host_is_broken_and_closed_on_all_workers_with_reason_and_audit(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.beside(monkeypatch, two={"hosts": [], "workers": ["two"], "silent": []})
    told = door("POST", f"{PATH}/Hooks.example%3A8443/break?minutes=2&reason=new+disk").json()
    (host,) = told["hosts"]
    assert (host["state"], host["by"], host["reason"]) == ("broken", "platform", "new disk")
    assert host["next_try_at"] == "1970-01-01T00:02:05.000Z"
    assert told["workers"] == ["worker-1", "two"]
    (_, asked) = door.asked[0]
    assert (asked.method, asked.path) == ("POST", f"{PATH}/hooks.example%3A8443/break")
    assert asked.query == "minutes=2&alone=true&reason=new+disk"
    assert door.parts.breaks.standing("hooks.example:8443", NOW_MS) is not None
    assert door.broken_elsewhere() == ["hooks.example:8443"]
    assert door("POST", f"{PATH}/hooks.example:8443/close").json()["hosts"] == [SILENT]
    assert door.broken_elsewhere() == []
    assert door.parts.breaks.is_tried("hooks.example:8443")
    events = door.parts.trail.take(10, 0)
    assert [(each.action, each.object, each.reason, each.caller) for each in events] == [
        ("host.break", "Hooks.example:8443", "new disk", "platform"),
        ("host.close", "hooks.example:8443", None, "platform"),
    ]


@pytest.mark.parametrize(
    ("method", "path", "who"),
    [
        ("GET", PATH, "some"),
        ("POST", f"{PATH}/a.example/break", "some"),
        ("POST", f"{PATH}/a.example/close", "some"),
        ("POST", f"{PATH}/a.example/break", "reads"),
        ("POST", f"{PATH}/a.example/close", "reads"),
    ],
)
def test_hosts_are_the_platforms(door: Door, method: str, path: str, who: str) -> None:
    assert door(method, path, who).status_code == 403
    assert door.parts.breaks.all(NOW_MS) == []


@pytest.mark.parametrize("bad", ["a.example/break?minutes=0", "a%20b/break", "a@b/close"])
def test_what_is_no_host_and_no_length_is_refused(door: Door, bad: str) -> None:
    assert door("POST", f"{PATH}/{bad}").status_code == 422


def test_nothing_is_answered_before_it_is_kept(door: Door) -> None:
    door.kafka.away = True
    answer = door("POST", f"{PATH}/a.example/break")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_written")
    # It holds here all the same, and is written as soon as it can be.
    assert [each.host for each in door.parts.breaks.all(NOW_MS)] == ["a.example"]
    door.parts._shared_breaks = None
    answer = door("POST", f"{PATH}/a.example/close")
    assert (answer.status_code, answer.json()["code"]) == (503, "starting")


def test_who_is_asked_by_another_worker_takes_what_that_has_written(door: Door) -> None:
    elsewhere = HostBreaks()
    elsewhere.open(HostBreak("a.example", NOW_MS - 7, NOW_MS + 60_000, "ann", "disk"))
    door.beside_it(elsewhere).settle()
    written = door.kafka.writes
    told = door("POST", f"{PATH}/a.example/break?minutes=1&alone=true&reason=disk").json()
    assert [(each["host"], each["by"]) for each in told["hosts"]] == [
        ("a.example", "ann"),
        ("hooks.example:8443", None),
    ]
    assert door.kafka.writes == written
    # A worker of an older release has not written it: then it is written here.
    door("POST", f"{PATH}/a.example/close?alone=true")
    assert door.broken_elsewhere() == []


def test_who_looks_at_once_is_shown_a_late_worker_as_it_was(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**SILENT, "host": "a.example", "worker_id": "two"}
    answers: dict[str, Any] = {"two": {"hosts": [other], "workers": ["two"], "silent": []}}
    door.beside(monkeypatch, **answers)
    assert door("GET", f"{PATH}?at_once=true").json()["remembered"] == []
    door.beside(monkeypatch, two=None)
    told = door("GET", f"{PATH}?at_once=true").json()
    assert [each["host"] for each in told["hosts"]] == ["a.example", "hooks.example:8443"]
    assert told["silent"] == ["two"]
    assert told["remembered"] == [{"worker_id": "two", "at": "1970-01-01T00:00:05.000Z"}]
    # A change is never answered by what was known before.
    assert door("POST", f"{PATH}/b.example/break?at_once=true").json()["remembered"] == []


def test_a_break_is_listed_once_whoever_knows_of_it(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    door("POST", f"{PATH}/a.example/break")
    same = {**SILENT, "host": "a.example", "worker_id": "two", "state": "broken", "by": "platform"}
    door.beside(monkeypatch, two={"hosts": [same], "workers": ["two"], "silent": []})
    told = door("GET", PATH).json()
    assert [(each["host"], each["worker_id"]) for each in told["hosts"]] == [
        ("a.example", "worker-1"),
        ("hooks.example:8443", "worker-1"),
    ]


def test_where_there_is_no_room_a_break_is_refused_and_changes_nothing(door: Door) -> None:
    number = 0
    while door("POST", f"{PATH}/h{number}.example/break?reason={'r' * 150}").status_code == 200:
        number += 1
    answer = door("POST", f"{PATH}/h{number}.example/break?reason={'r' * 150}")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_breaks")
    assert f"{number} hosts are broken" in answer.json()["detail"]
    assert len(door.broken_elsewhere()) == number


def test_what_nobody_has_broken_is_tried_though_there_is_no_room_to_say_so(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = HostBreak("h0", NOW_MS, NOW_MS + 60_000, "ann", None)
    while door.parts.shared_breaks.make_room(new):
        door.parts.breaks.open(new)
        new = new._replace(host=f"h{len(door.parts.breaks.all(NOW_MS))}")
    door.beside(monkeypatch, two={"hosts": [], "workers": ["two"], "silent": []})
    for query in ("", "?alone=true"):
        assert door("POST", f"{PATH}/other.example/close{query}").status_code == 200
        assert door.parts.breaks.is_tried("other.example")
    # Another one took the room meanwhile: nobody is told that Kafka is away.
    door.parts.breaks.open(new._replace(host="one.more.example"))
    answer = door("POST", f"{PATH}/h0/close")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_breaks")


def test_a_worker_that_does_not_deliver_is_none_of_those_that_took_it(door: Door) -> None:
    door.view.posting = Posting  # type: ignore[method-assign]
    told = door("POST", f"{PATH}/a.example/break").json()
    assert (told["workers"], [each["host"] for each in told["hosts"]]) == ([], ["a.example"])
