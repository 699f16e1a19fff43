"""A worker that waits for a broker says for whom, with address and cause."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from belfry.client.faults import Faults
from belfry.process.cluster_start import _await_cluster

REFUSED = "Connect to ipv4#127.0.0.1:1 failed: Connection refused"


class Admin:
    """Answers at the third time; before that its client reports an error."""

    def __init__(self, faults: Faults, code: int) -> None:
        self._faults, self._code, self._asked = faults, code, 0

    def list_topics(self, timeout: float) -> Any:
        self._asked += 1
        if self._asked == 3:
            return type("Cluster", (), {"cluster_id": "abc"})
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, _timeout: float) -> None:
        self._faults(KafkaError(self._code, REFUSED))


@pytest.mark.parametrize(
    ("code", "what", "level"),
    [
        (KafkaError._TRANSPORT, "no Kafka broker answers yet", "warning"),
        (KafkaError._AUTHENTICATION, "no secure connection to Kafka", "error"),
    ],
)
def test_what_a_start_waits_for_is_told(
    monkeypatch: pytest.MonkeyPatch, code: int, what: str, level: str
) -> None:
    monkeypatch.setattr("belfry.process.cluster_start.time.sleep", lambda _seconds: None)
    faults, told = Faults(), list[str]()
    admin: Any = Admin(faults, code)
    with capture_logs() as lines:
        assert _await_cluster(admin, faults, "k:1", told.append) == "abc"
    assert len(told) == len(lines) == 2
    assert told[0].startswith(f"{what} at k:1: {REFUSED}. ")
    assert (lines[0]["event"], lines[0]["at"], lines[0]["log_level"]) == (what, "k:1", level)
    assert lines[0]["cure"]
