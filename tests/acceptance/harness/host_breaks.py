"""A host that is broken, as processes know it that know of one another by Kafka alone."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from tests.acceptance.harness.site import wait_for
from tests.acceptance.harness.worker import Worker


@contextmanager
def broken_for_both(host: str, one: Worker, other: Worker) -> Iterator[None]:
    """Broken at one process, known at the other, still so after restarts; closed at the other."""
    assert broken(one, "POST", f"/{host}/break?reason=moves") == [host]
    wait_for("the break", partial(same, other, [host]))
    for each in (one, other):
        assert each.stop() == 0
        each.start().wait_ready()
        wait_for("the break after a restart", partial(same, each, [host]))
    yield
    assert broken(other, "POST", f"/{host}/close") == []
    wait_for("the close", partial(same, one, []))


def same(worker: Worker, hosts: list[str]) -> bool:
    """Whether these hosts are broken, as a process knows it."""
    return broken(worker) == hosts


def broken(worker: Worker, method: str = "GET", ending: str = "") -> list[str]:
    """What a process answers of hosts that are broken."""
    connection = http.client.HTTPConnection("127.0.0.1", worker.http_port, timeout=10)
    with closing(connection):
        connection.request(method, f"/v1/delivery-hosts{ending}")
        answer = connection.getresponse()
        told = json.loads(answer.read())
    assert answer.status == 200, told
    return [each["host"] for each in told["hosts"] if each["state"] == "broken"]
