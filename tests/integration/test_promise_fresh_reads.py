"""An owner that was frozen never answers what its successor has changed, nor does it deny it.

owner      reads ── SIGSTOP ───────────────────────────────── SIGCONT ── reads: 503 or the truth
successor                     takes over ── DELETE 200, POST 201
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from belfry.schedules.identity import Homes
from tests.acceptance.harness.failover import divided, owned
from tests.acceptance.harness.http import Http, place, schedules
from tests.acceptance.harness.site import Site, wait_for
from tests.integration.test_promise_standbys import all_warm, beside_each_other, cluster

pytestmark = pytest.mark.slow
FAR = "2060-01-01T00:00:00Z"
# Answered at once by whoever may answer, and by nobody else.
TIMES = 40


def settled(http: Http, method: str, path: str, body: Any = None) -> int:
    """The status of an answer other than 503."""

    def asked() -> int:
        status = http(method, path, body)[0]
        return 0 if status == 503 else status

    return wait_for(f"{method} {path}", asked, 40)


def test_a_frozen_owner_comes_back_and_answers_nothing_stale(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("fresh"), tmp_path, SESSION_TIMEOUT_MS="10000") as site:
        one, other = site.worker().start(), site.worker().start()
        wait_for("everybody to have a share", lambda: divided([one, other]), 60)
        wait_for("warm standbys", lambda: all_warm(one) and all_warm(other), 30)
        wait_for(
            "an assignment map of two", lambda: beside_each_other(cluster(other)["members"]), 30
        )
        homes = Homes(4)
        tenant = next(f"t{n}" for n in range(100) if homes.of(f"t{n}") in owned(one))
        at_one, at_other = Http(one), Http(other)
        first = {"schedule_id": "x", "at": FAR}
        assert settled(at_other, "POST", schedules(tenant), first) == 201
        stopping = Event()

        def read() -> None:
            while not stopping.is_set():
                assert at_one("GET", place(tenant, "x"))[0] == 200

        reader = Thread(target=read, daemon=True)
        reader.start()
        wait_for("reads within a lease", lambda: settled(at_one, "GET", place(tenant, "x")) == 200)
        stopping.set()
        reader.join()
        one.signal(signal.SIGSTOP)
        try:
            wait_for("a successor", lambda: owned(other) == set(range(4)), 30)
            assert settled(at_other, "DELETE", place(tenant, "x")) == 200
            second = {"schedule_id": "y", "at": FAR}
            assert settled(at_other, "POST", schedules(tenant), second) == 201
        finally:
            one.signal(signal.SIGCONT)
        answers = [
            (at_one("GET", place(tenant, "x"))[0], at_one("GET", place(tenant, "y"))[0])
            for _ in range(TIMES)
        ]
        stale = [pair for pair in answers if pair[0] == 200 or pair[1] == 404]
        assert not stale, answers
        assert settled(at_one, "GET", place(tenant, "x")) == 404
        assert settled(at_one, "GET", place(tenant, "y")) == 200
