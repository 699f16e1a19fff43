"""Waits of clients: for a broker that was away, and for an answer where nothing follows."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.client import kafka
from belfry.client.errors import BadProperty
from belfry.client.kafka import SOON_MS, Cluster

FIRST, LONGEST = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
WAIT = "fetch.wait.max.ms"


@pytest.mark.parametrize("given", [{}, {FIRST: 2_000}, {FIRST: "2000"}, {FIRST: 50, LONGEST: 100}])
def test_a_client_takes_a_users_first_wait(given: dict[str, Any]) -> None:
    Cluster("nowhere:1", given).admin()


def test_a_wait_that_is_no_number_is_refused_in_words() -> None:
    with pytest.raises(BadProperty, match=r"reconnect\.backoff\.ms"):
        Cluster("nowhere:1", {FIRST: "soon"}).admin()


@pytest.mark.parametrize(
    ("given", "tells_ends", "waits_ms"),
    [({}, True, SOON_MS), ({}, False, None), ({WAIT: 70}, True, 70), ({WAIT: 70}, False, 70)],
)
def test_only_who_waits_for_ends_has_answers_without_records_soon(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], tells_ends: bool, waits_ms: int | None
) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(kafka, "Consumer", made.append)
    Cluster("nowhere:1", given).consumer("readers", tells_ends=tells_ends)
    assert made[0].get(WAIT) == waits_ms
