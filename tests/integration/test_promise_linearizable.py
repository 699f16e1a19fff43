"""Schedule, cancel and look over HTTP, while owners are killed and frozen: each call is atomic.

callers   put ─ get ─ create ─ delete ─ get ─ …     of a few schedules, at either worker, at once
workers   ── SIGKILL, started ── SIGSTOP, SIGCONT ── SIGTERM, started ──
judge     is there an order of all calls that explains all answers? (`harness/linear.py`)
"""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from math import inf
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest

from tests.acceptance.harness.failover import divided, owned
from tests.acceptance.harness.http import place
from tests.acceptance.harness.linear import NOTHING, Call, linearizable, shortest
from tests.acceptance.harness.site import Site, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]
FAR = "2060-01-01T00:00:00Z"
TENANTS = [f"lin{number}" for number in range(6)]
CALLERS = 5
ANSWER_S = 4.0
CALM_S = 90.0
# After so many calls callers go to the next set of schedules: short histories are judged quickly.
CALLS = 60
# What says how a call ended; anything else leaves it open.
TOLD = {"get": (200, 404), "delete": (200, 404), "put": (200, 201), "create": (201, 412)}


class Callers:
    """Threads that call until told to stop, and what each call was answered."""

    def __init__(self, workers: list[Worker]) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._asked = 0
        self.calls: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
        self.counts: Counter[str] = Counter()
        # Answers that nobody should get.
        self.odd: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CALLERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        random = Random(number)
        while not self._stopping.is_set():
            with self._lock:
                self._asked += 1
                asked = self._asked
            tenant = random.choice(TENANTS)
            schedule_id = f"s{asked // (CALLS * len(TENANTS))}"
            name = random.choice(("put", "put", "create", "delete", "get", "get", "get"))
            port = random.choice(self._workers).http_port
            call, odd = called(port, place(tenant, schedule_id), name, f"v{asked}")
            with self._lock:
                self.calls[tenant, schedule_id].append(call)
                self.counts[f"{name} {call.status}"] += 1
                self.odd += [odd] if odd else []
            if not call.answered:
                sleep(0.2)


def called(port: int, path: str, name: str, value: str) -> tuple[Call, str]:
    """One call, and how it ended; and its answer, where nobody should get such a one."""
    began = monotonic()
    status, found, odd = 0, value, ""
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        headers = {"content-type": "application/json"}
        if name == "create":
            headers["if-none-match"] = "*"
        method = {"get": "GET", "delete": "DELETE"}.get(name, "PUT")
        body = json.dumps({"at": FAR, "payload_text": value}) if method == "PUT" else None
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        told = answer.read()
        if answer.status in TOLD[name]:
            status = answer.status
            if name == "get":
                found = payload(told) if status == 200 else NOTHING
        elif answer.status != 503:
            odd = f"{name} {answer.status} {told!r}"
    except (OSError, HTTPException):
        pass
    finally:
        connection.close()
    return Call(name, found, status, began, monotonic() if status else inf), odd


def payload(told: bytes) -> str:
    """The value of a schedule that was looked at."""
    return str(json.loads(told)["payload_text"])


def strike(workers: list[Worker], random: Random) -> None:
    """Each kind of fault once, in turn at either worker; both share again in between."""
    for kind in ("kill", "freeze", "stop", "freeze", "kill"):
        worker = random.choice(workers)
        other = next(each for each in workers if each is not worker)
        if kind == "freeze":
            worker.signal(signal.SIGSTOP)
            wait_for("a successor", lambda: owned(other) == {0, 1, 2, 3}, CALM_S)  # noqa: B023
            sleep(1.0)
            worker.signal(signal.SIGCONT)
        elif kind == "kill":
            worker.kill()
            sleep(3.0)
            worker.start()
        else:
            assert worker.stop() == 0, worker.tail()
            worker.start()
        wait_for("both to have a share", lambda: divided(workers), CALM_S)
        sleep(2.0)


def test_calls_while_owners_change_have_an_order(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("linear"), tmp_path, SESSION_TIMEOUT_MS="6000") as site:
        workers = [site.worker().start() for _ in range(2)]
        wait_for("both to have a share", lambda: divided(workers), CALM_S)
        callers = Callers(workers)
        callers.start()
        try:
            strike(workers, Random(1))
        finally:
            callers.stop()
        assert {name.split()[0] for name in callers.counts if not name.endswith(" 0")} == {*TOLD}
        unanswered = sum(count for name, count in callers.counts.items() if name.endswith(" 0"))
        assert not callers.odd
        assert unanswered, f"no fault struck a call: {callers.counts}"
        for place_of, calls in callers.calls.items():
            if not linearizable(calls):
                raise AssertionError((place_of, shortest(calls)))
        print(f"{sum(callers.counts.values())} calls: {dict(callers.counts)}")  # noqa: T201
