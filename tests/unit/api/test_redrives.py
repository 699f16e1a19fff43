"""Redrive over HTTP: who may, what is asked of Kafka, and what each failure is answered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest, new_key
from belfry.api.json.redrives import MOST_NAMED
from belfry.api.routes.app import create_app
from belfry.api.workers.kept import RedriveWork
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.client.errors import Unavailable
from belfry.client.redrive_source import AnotherRedrive, RedriveCount, TooMuchToRedrive
from belfry.client.refired import RefireRange, SharedTopic
from belfry.client.refusals import RedriveRange
from belfry.telemetry.metrics import Metrics
from belfry.tenants.policy import TenantPolicy
from tests.unit.api.conftest import FakeWorker

NOW: Final = 1_796_169_600_000
FROM: Final = "2026-12-01T00:00:00Z"
FROM_MS: Final = 1_796_083_200_000
REJECTED: Final = {"what": "rejected", "range_from": FROM}
FIRES: Final = {"what": "fires", "range_from": FROM}


class FakeTopics:
    """Has three refusals, and sends two of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[RedriveWork, Mapping[str, TenantPolicy]]] = []
        self.fails: Exception | None = None
        self.found = RedriveCount(
            Counter(bad_cron=3), 4, Counter(cut=1), [(0, n) for n in range(3)]
        )

    def redrive(
        self, work: RedriveWork, policies: Mapping[str, TenantPolicy]
    ) -> tuple[RedriveCount, int]:
        self.asked.append((work, policies))
        if self.fails is not None:
            raise self.fails
        return self.found, 2 if work.per_second else 0


class FakePolicies:
    def names(self) -> list[str]:
        return ["mine", "gone"]

    def policy(self, tenant: str) -> TenantPolicy | None:
        return TenantPolicy(tenant, output_topic="o") if tenant == "mine" else None


class Caller:
    """A client with a key of a role, bound to tenants."""

    def __init__(self, role: str, *tenants: str) -> None:
        key = new_key()
        entry = {"name": "n", "sha256": digest(key), "tenants": tenants, "role": role}
        keys = ApiKeys(json.dumps([entry]), None, lambda: 0.0)
        parts = ApiDependencies(Gate([keys]), (), lambda: NOW)
        self.topics, self.trail = FakeTopics(), parts.trail
        opened: Any = (None, None, None, None, FakePolicies(), self.topics)
        parts.open(Open(*opened))
        app = create_app(FakeWorker(), Metrics(CollectorRegistry()), parts=parts)
        self._http = TestClient(app, "http://127.0.0.1:8700", raise_server_exceptions=False)
        self._headers = {"authorization": f"Bearer {key}"}

    def post(self, body: Any, path: str = "/v1/tenants/mine/redrives") -> Any:
        return self._http.post(path, headers=self._headers, json=body)

    def dry(self, body: Any) -> Any:
        return self.post(body, "/v1/tenants/mine/redrives?dry=true")


def test_a_slice_is_sent_and_what_is_left_is_told() -> None:
    caller = Caller("schedule", "mine")
    answer = caller.post({**REJECTED, "code": "bad_cron", "per_second": 7, "reason": "mended"})
    assert answer.json() == {
        "what": "rejected",
        "range_from": "2026-12-01T00:00:00.000Z",
        "range_until": "2026-12-02T00:00:00.000Z",
        "found": 3,
        "by": {"bad_cron": 3},
        "kinds": 1,
        "sent": 2,
        "left": 1,
        "redriven": 4,
        "stuck": {"cut": 1},
    }
    asked = RedriveRange("mine", FROM_MS, NOW, "bad_cron")
    ((work, policies),) = caller.topics.asked
    assert work == RedriveWork(asked, "mine", 7, "mended")
    assert {name: each.output_topic for name, each in policies.items()} == {"mine": "o"}


def test_events_are_asked_for_by_schedule_prefix_and_name() -> None:
    caller = Caller("schedule", "mine")
    day = {**FIRES, "range_until": FROM_MS + 5}
    caller.post({**day, "schedule_id": "a", "prefix": "p", "name": "monday"})
    caller.post(day)
    first, second = (work.asked for work, _ in caller.topics.asked)
    assert first == RefireRange(FROM_MS, FROM_MS + 5, "a", "p", "monday")
    assert second == RefireRange(FROM_MS, FROM_MS + 5, None, "", "redrive")


def test_a_count_changes_nothing_and_may_be_had_by_who_reads() -> None:
    caller = Caller("read", "mine")
    answer = caller.dry(REJECTED)
    assert (answer.status_code, answer.json()["sent"], answer.json()["left"]) == (200, 0, 3)
    assert [work.per_second for work, _ in caller.topics.asked] == [0]
    assert caller.trail.take(10, 0) == []
    assert caller.post(REJECTED).status_code == 403
    assert len(caller.topics.asked) == 1


def test_what_is_sent_stands_in_the_audit_log_with_its_reason() -> None:
    caller = Caller("schedule", "*")
    caller.post({**REJECTED, "reason": "mended"})
    caller.post(REJECTED, "/v1/redrives")
    noted = [(each.action, each.tenant, each.reason) for each in caller.trail.take(10, 0)]
    assert noted == [("redrive.send", "mine", "mended"), ("redrive.send", None, None)]


@pytest.mark.parametrize(("role", "status"), [("read", 403), ("schedule", 200), ("operate", 200)])
def test_refusals_of_all_are_for_who_is_bound_to_all_and_may_schedule(
    role: str, status: int
) -> None:
    bound, free = Caller(role, "mine", "m*"), Caller(role, "*")
    assert bound.post(REJECTED, "/v1/redrives").status_code == 403
    assert bound.post(REJECTED, "/v1/tenants/other/redrives").status_code == 403
    assert free.post(REJECTED, "/v1/redrives").status_code == status
    assert free.post(REJECTED, "/v1/redrives?dry=true").status_code == 200
    assert not bound.topics.asked
    assert {work.asked.tenant for work, _ in free.topics.asked} == {"*"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"what": "rejected"}, "range_from"),
        ({**REJECTED, "what": "all"}, "what"),
        ({**REJECTED, "range_until": FROM}, "is not before 2026-12-01T00:00:00.000Z"),
        ({**REJECTED, "range_from": NOW}, "is not before 2026-12-02T00:00:00.000Z"),
        ({**REJECTED, "code": "bad_crn"}, "did you mean bad_cron?"),
        ({**REJECTED, "prefix": "a"}, "prefix is of what=fires"),
        ({**REJECTED, "name": "a"}, "name is of what=fires"),
        ({**FIRES, "code": "bad_cron"}, "code is of what=rejected"),
        ({**FIRES, "per_second": 0}, "per_second"),
        ({**FIRES, "topic": "x"}, "topic"),
    ],
)
def test_what_selects_nothing_or_cannot_be_meant_is_refused(body: Any, told: str) -> None:
    caller = Caller("schedule", "mine")
    answer = caller.post(body)
    assert answer.status_code == 422
    assert told in answer.text
    assert not caller.topics.asked


def test_events_of_all_tenants_are_not_sent_at_once() -> None:
    answer = Caller("schedule", "*").post(FIRES, "/v1/redrives")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_redrive")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (SharedTopic("messages", ["sms"]), 409, "shared_topic"),
        (TooMuchToRedrive(9), 422, "too_much"),
        (AnotherRedrive("Another redrive has begun"), 409, "another_redrive"),
        (Unavailable("nobody answers"), 503, "unavailable"),
    ],
)
def test_why_nothing_was_sent_is_told(error: Exception, status: int, code: str) -> None:
    caller = Caller("schedule", "mine")
    caller.topics.fails = error
    answer = caller.post(FIRES)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert str(error) in answer.json()["detail"]


def test_an_answer_names_the_schedules_with_the_most_events() -> None:
    caller = Caller("read", "mine")
    caller.topics.found.codes = Counter({f"s{n}": n + 1 for n in range(2 * MOST_NAMED)})
    told = caller.dry(FIRES).json()
    assert (len(told["by"]), told["kinds"]) == (MOST_NAMED, 2 * MOST_NAMED)
    assert min(told["by"].values()) == MOST_NAMED + 1
