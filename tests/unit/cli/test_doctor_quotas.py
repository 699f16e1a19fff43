"""What `belfry doctor` says of quotas: those of brokers, and those of tenants."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from belfry.cli import doctor_quotas
from belfry.cli.check import Status
from belfry.cli.doctor_quotas import quota_checks, throttled_checks
from belfry.cli.failures import CommandError

PAGE = """
belfry_client_throttled_seconds_total{broker="1",client="writer"} 12.25
belfry_client_throttled_seconds_total{broker="2",client="writer"} 1.0
belfry_client_throttled_seconds_total{broker="1",client="requests"} 0.5
belfry_client_throttled_seconds_total{broker="1",client="changelog"} 0.0
"""


def test_clients_that_brokers_hold_back_are_told_by_what_they_are_for() -> None:
    (found,) = throttled_checks(PAGE, "kafka-1:9092")
    assert (found.check, found.status) == ("quotas", Status.RISK)
    assert "since its start: writer for 13.2 s, requests for 0.5 s." in found.detail
    assert "kafka-configs.sh --bootstrap-server kafka-1:9092 --describe" in found.to_do


def test_some_milliseconds_are_nothing() -> None:
    assert [*throttled_checks(PAGE.replace(" 12.25", " 0.0").replace(" 1.0", " 0.4"), "k")] == []
    assert [*throttled_checks("other 9\n", "k")] == []


class Remote:
    """A worker with tenants that were refused something."""

    policies: ClassVar[dict[str, Any]] = {
        "/v1/tenants/full": {"max_pending": 10},
        "/v1/tenants/a%2Fb": {"max_pending": 11},
        "/v1/tenants/free": {"max_pending": None},
    }

    def __init__(self, _session: Any) -> None:
        """It is asked by the paths above."""

    def get(self, path: str, **query: Any) -> Any:
        if path != "/v1/tenants":
            return self.policies[path]
        assert query["sort"] == "rejected"
        names = {"full": True, "a/b": True, "free": True, "unknown": False}
        figures = [
            {"tenant": name, "pending": 10, "rejected": 1, "has_policy": known}
            for name, known in names.items()
        ]
        idle = {"tenant": "never", "pending": 10, "rejected": 0, "has_policy": True}
        return {"figures": [*figures, idle]}


def test_a_tenant_that_has_used_up_its_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_quotas, "Remote", Remote)
    session: Any = None
    (found,) = quota_checks(session)
    assert (found.check, found.status) == ("quotas", Status.RISK)
    assert found.detail.startswith(
        "full has used up its quota: 10 of its schedules wait, and max_pending is 10; 1 of its"
    )
    assert found.to_do.startswith("belfry tenant set full max_pending=…")


def test_a_worker_that_does_not_tell_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Remote):
        def get(self, path: str, **query: Any) -> Any:
            raise CommandError("it lets nobody in")

    monkeypatch.setattr(doctor_quotas, "Remote", Refusing)
    session: Any = None
    (found,) = quota_checks(session)
    assert found.status is Status.SKIPPED
