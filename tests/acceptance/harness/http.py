"""A worker's HTTP port, as a caller that knows no belfry sees it."""

from __future__ import annotations

import json
from time import monotonic, sleep
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.acceptance.harness.worker import Worker

Answer = tuple[int, Any, dict[str, str]]
# A caller that is told to try again does so every so often.
AGAIN_S = 0.1


class Http:
    """One worker's HTTP port."""

    def __init__(self, worker: Worker, patience_s: float = 0.0) -> None:
        """For so long, asks again where a partition is on its way (503), as each caller is told to.

        An owner that a busy machine keeps from a commit for seconds cannot show that it is one.
        """
        self._url = f"http://127.0.0.1:{worker.http_port}"
        self._patience_s = patience_s

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Status, body and headers of the answer."""
        deadline = monotonic() + self._patience_s
        while on_its_way(answer := self._asked(method, path, body, **headers)):
            if monotonic() > deadline:
                break
            sleep(AGAIN_S)
        return answer

    def _asked(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        kind = headers.pop("kind", "application/json")
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        asked = Request(self._url + path, data=data, method=method)
        if data is not None:
            asked.add_header("content-type", kind)
        for name, value in headers.items():
            asked.add_header(name.replace("_", "-"), value)
        try:
            answer = urlopen(asked, timeout=30)
        except HTTPError as error:
            answer = error
        with answer:
            raw = answer.read()
            told = {name.lower(): value for name, value in answer.headers.items()}
        if "json" in told.get("content-type", "") and "ndjson" not in told["content-type"]:
            return answer.status, json.loads(raw), told
        return answer.status, raw, told


def on_its_way(answer: Answer) -> bool:
    """Whether a worker says that it cannot answer now, and somebody will soon."""
    status, problem, _ = answer
    return status == 503 and "on its way" in str(problem)


def schedules(tenant: str) -> str:
    return f"/v1/tenants/{tenant}/schedules"


def place(tenant: str, schedule_id: str) -> str:
    return f"{schedules(tenant)}/{quote(schedule_id, safe='')}"
