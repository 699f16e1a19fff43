"""The owner of a partition is killed amid writes and reads: what was accepted is there.

writes  ──201──201──503──503──201──       to the worker that survives; 503 is asked again
reads   ──200──200──503──503──200──       of what was accepted: never 404
                    ▲ kill -9
"""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tests.acceptance.harness.http import Http, place, schedules
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TENANTS = [f"t{number}" for number in range(8)]
FAR = "2060-01-01T00:00:00Z"


class Callers:
    """Threads that write and read until told to stop."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.accepted: list[tuple[str, str]] = []
        self.written: Counter[int] = Counter()
        self.read: Counter[int] = Counter()
        self.wrong: list[Any] = []
        self._stopping = threading.Event()
        jobs = [(self._write, number) for number in range(3)] + [
            (self._read, number) for number in range(2)
        ]
        self._threads = [threading.Thread(target=job, args=(number,)) for job, number in jobs]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _write(self, caller: int) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            tenant, schedule_id = TENANTS[number % len(TENANTS)], f"{caller}/{number}"
            body = {"schedule_id": schedule_id, "at": FAR, "request_id": f"{caller}-{number}"}
            while True:
                status, answer, _ = self._http("POST", schedules(tenant), body)
                self.written[status] += 1
                if status != 503 or self._stopping.is_set():
                    break
            if status == 201:
                self.accepted.append((tenant, schedule_id))
            elif status != 503:
                self.wrong.append((status, answer))

    def _read(self, caller: int) -> None:
        number = caller
        while not self._stopping.is_set():
            if not self.accepted:
                sleep(0.01)
                continue
            number += 7
            tenant, schedule_id = self.accepted[number % len(self.accepted)]
            status, answer, _ = self._http("GET", place(tenant, schedule_id))
            self.read[status] += 1
            if status not in (200, 503):
                self.wrong.append((status, answer))


def test_no_accepted_write_is_lost(kafka: str, tmp_path: Path) -> None:
    with Site(kafka, f"http-kill-{now_ms()}", tmp_path) as site:
        for _ in range(2):
            site.worker().start()
        for worker in site.workers:
            worker.wait_ready()
        victim, survivor = site.workers
        callers = Callers(Http(survivor))
        callers.start()
        try:
            wait_for("writes before", lambda: len(callers.accepted) > 30, 60)
            before = len(callers.accepted)
            victim.kill()
            wait_for("a caller that waits", lambda: callers.written[503] + callers.read[503], 60)
            survivor.wait_ready(60)
            settled = len(callers.accepted)
            wait_for("writes after", lambda: len(callers.accepted) > settled + 30, 60)
        finally:
            callers.stop()
        assert not callers.wrong, callers.wrong[:5]
        assert len(callers.accepted) > before
        http = Http(survivor)
        lost = [
            (tenant, schedule_id)
            for tenant, schedule_id in callers.accepted
            if http("GET", place(tenant, schedule_id))[0] != 200
        ]
        assert not lost
