"""What a tenant used, over HTTP: whose it is, which periods, and why there is no answer."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest, new_key
from belfry.api.routes.app import create_app
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.client.errors import MissingTopic
from belfry.client.usage import TooMuchUsage, UsageSpan
from belfry.telemetry.metrics import Metrics
from belfry.wire.metering import Usage
from tests.unit.api.conftest import FakeWorker

HOUR: Final = 3_600_000
NOW: Final = 1_800_000_000_000 + HOUR // 2
BEGIN: Final = 1_800_000_000_000 - HOUR


class FakeMeter:
    """Keeps what it is asked, and answers with one hour, or with what goes wrong."""

    def __init__(self) -> None:
        self.asked: list[UsageSpan] = []
        self.error: Exception | None = None

    def usage(self, asked: UsageSpan) -> list[Usage]:
        self.asked.append(asked)
        if self.error is not None:
            raise self.error
        counts = {"accepted": 3, "fired": 2, "delivered": 1, "held_byte_ms": 9 * HOUR}
        return [Usage(tenant="mine", from_ms=BEGIN, until_ms=BEGIN + HOUR, **counts)]


class Reader:
    """A client with a key that reads one tenant."""

    def __init__(self) -> None:
        key = new_key()
        entry = {"name": "n", "sha256": digest(key), "tenants": ["mine"], "role": "read"}
        gate = Gate([ApiKeys(json.dumps([entry]), None, lambda: 0.0)])
        parts = ApiDependencies(gate, (), lambda: float(NOW))
        self.meter = FakeMeter()
        opened: Any = (None, None, None, None, None, self.meter)
        parts.open(Open(*opened))
        app = create_app(FakeWorker(), Metrics(CollectorRegistry()), parts=parts)
        self._headers = {"authorization": f"Bearer {key}"}
        self.stranger = TestClient(app, "http://127.0.0.1:8700", raise_server_exceptions=False)

    def get(self, path: str) -> Any:
        return self.stranger.get(path, headers=self._headers)


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_the_last_day_that_is_over_is_shown(reader: Reader) -> None:
    answer = reader.get("/v1/tenants/mine/usage")
    assert answer.status_code == 200, answer.text
    assert reader.meter.asked == [UsageSpan("mine", NOW - 24 * HOUR, NOW)]
    assert answer.json() == {
        "tenant": "mine",
        "since": "2027-01-14T08:30:00.000Z",
        "until": "2027-01-15T08:30:00.000Z",
        "periods": [
            {
                "from": "2027-01-15T07:00:00.000Z",
                "until": "2027-01-15T08:00:00.000Z",
                "accepted": 3,
                "fired": 2,
                "delivered": 1,
                "held_byte_ms": 9 * HOUR,
                "held_byte_hours": 9.0,
            }
        ],
    }


@pytest.mark.parametrize(
    ("query", "span"),
    [
        ("?since=2027-01-01T00:00:00Z", (1_798_761_600_000, NOW)),
        (f"?until={NOW - HOUR}", (NOW - 25 * HOUR, NOW - HOUR)),
        # What is not over is not shown.
        (f"?since={NOW - HOUR}&until={NOW + HOUR}", (NOW - HOUR, NOW)),
    ],
)
def test_a_span_may_be_given(reader: Reader, query: str, span: tuple[int, int]) -> None:
    assert reader.get("/v1/tenants/mine/usage" + query).status_code == 200
    assert reader.meter.asked == [UsageSpan("mine", *span)]


def test_only_who_may_read_a_tenant_sees_what_it_used(reader: Reader) -> None:
    assert reader.get("/v1/tenants/theirs/usage").status_code == 403
    assert reader.stranger.get("/v1/tenants/mine/usage").status_code == 401
    assert not reader.meter.asked


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (MissingTopic("no topic"), 404, "not_metered"),
        (TooMuchUsage(300_001, 200_000), 422, "too_much"),
        (ConnectionError("nobody answers"), 503, "unavailable"),
    ],
)
def test_why_there_is_no_answer_is_told(
    reader: Reader, error: Exception, status: int, code: str
) -> None:
    reader.meter.error = error
    answer = reader.get("/v1/tenants/mine/usage")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_misspelt_parameter_is_refused(reader: Reader) -> None:
    assert reader.get("/v1/tenants/mine/usage?from=1").status_code == 422
