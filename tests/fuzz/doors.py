"""Doors that bytes of strangers come in by, each with what has to hold whatever the bytes are.

    requests   one record of the requests topic: exactly one verdict, and the engine goes on
    headers    a record that speaks the header protocol: the same
    bodies     a body over HTTP: never 500, and what is refused asks for nothing
    cursors    a cursor of a list: 200 or 422, and no other tenant's schedule
    policies   a record of the topic of policies: a policy, or a refusal that says why

Each input has to be done with within `MOST_S` of processor time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import thread_time
from typing import Final
from urllib.parse import quote

from belfry.schedules.policy import problems
from belfry.wire.catalogue import MalformedError
from belfry.wire.policies import decode_policy, encode_policy
from belfry.wire.record import Headers
from tests.attack.door import OTHER, OWN, Door
from tests.fuzz.inputs import one_input
from tests.unit.engine.driver import T0, Driver

MOST_S: Final = 1.0
HOME: Final = "/v1/tenants/orders/schedules"
KINDS: Final = ("application/json", "application/x-ndjson", "text/plain")
PLACES: Final = (("POST", HOME), ("PUT", HOME + "/a"), ("POST", "/v1/preview"))


@cache
def _door() -> Door:
    return Door([], opened=True)


def headers(data: bytes) -> None:
    """Names and values, with a zero byte between them."""
    parts = data.split(b"\0")
    given: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"a")]
    for name, value in zip(parts[::2], parts[1::2], strict=False):
        given.append((name.decode(errors="replace"), value))
    driver = Driver()
    driver.send(b"v", None, given)
    step = driver.step(T0)
    assert sum(step.effects.outcomes.values()) + len(step.effects.rerouted) == 1, step
    driver.ask(tenant="after", schedule_id="fine", at=T0 + 5)
    assert sum(driver.step(T0).effects.outcomes.values()) == 1


def bodies(data: bytes) -> None:
    """Where it goes and of which kind it is, in the first byte; the body behind it."""
    first = data[0] if data else 0
    method, path = PLACES[first % len(PLACES)]
    kind = KINDS[first // len(PLACES) % len(KINDS)]
    answer = _door()(method, path, {"content-type": kind}, data[1:])
    assert answer.status < 500, answer
    assert _door().reached <= {OWN}, answer


def cursors(data: bytes) -> None:
    """A cursor as it stands in a query."""
    answer = _door()("GET", f"{HOME}?limit=2&cursor={quote(data)}")
    assert answer.status in (200, 422), answer
    assert OTHER.encode() not in answer.body.replace(b"others do", b""), answer
    assert _door().reached <= {OWN}, answer


def policies(data: bytes) -> None:
    """The body of a policy's record."""
    try:
        policy = decode_policy(data)
    except MalformedError:
        return
    if not problems(policy):
        # NaN is a problem, so a policy that has none is equal to itself.
        assert decode_policy(encode_policy(policy)) == policy


DOORS: Final[dict[str, Callable[[bytes], None]]] = {
    "requests": one_input,
    "headers": headers,
    "bodies": bodies,
    "cursors": cursors,
    "policies": policies,
}


class Timed:
    """A door that says so where an input takes longer than any before, and refuses the slow."""

    def __init__(self, name: str) -> None:
        self._door = DOORS[name]
        self.inputs, self.slowest_s = 0, 0.0

    def __call__(self, data: bytes) -> None:
        """Let one input in."""
        began = thread_time()
        self._door(data)
        took_s = thread_time() - began
        self.inputs += 1
        # The first inputs import and compile.
        if self.inputs > 10 and took_s > self.slowest_s:
            self.slowest_s = took_s
            print(f"slowest: {took_s * 1000:.1f} ms, {len(data)} bytes: {data[:60]!r}", flush=True)
        assert self.inputs <= 10 or took_s < MOST_S, f"{took_s:.1f} s for {len(data)} bytes"
