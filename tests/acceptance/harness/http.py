"""A worker's HTTP port, as a caller that knows no belfry sees it."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.acceptance.harness.worker import Worker


class Http:
    """One worker's HTTP port."""

    def __init__(self, worker: Worker) -> None:
        self._url = f"http://127.0.0.1:{worker.http_port}"

    def __call__(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers of the answer."""
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


def schedules(tenant: str) -> str:
    return f"/v1/tenants/{tenant}/schedules"


def place(tenant: str, schedule_id: str) -> str:
    return f"{schedules(tenant)}/{quote(schedule_id, safe='')}"
