"""HttpSender: each key keeps its order, hosts do not wait for one another, nor for silent ones."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import pytest

from belfry.delivery.answers import Answer, End
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.hosts import FAILURES
from belfry.delivery.http_requests import Post, Secrets
from belfry.delivery.http_sender import HttpSender
from belfry.delivery.transport import HttpTransport
from belfry.delivery.work import Work, WorkId
from belfry.host.clock import SystemClock
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

PER_HOST = 3
WAIT_S = 20.0
FLOOD, STEPS, STEP_S = 300, 4, 0.0005


class Net:
    """A transport: hosts named ``hang…`` do not answer before `release`, ``dead…`` never do."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, bytes]] = []
        self.at_once: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.released = threading.Event()

    async def post(self, post: Post) -> Answer:
        host = urlsplit(post.url).hostname or ""
        self.posted.append((host, post.body))
        self.at_once[host] += 1
        self.most[host] = max(self.most[host], self.at_once[host])
        await asyncio.sleep(0)
        try:
            while host.startswith("hang") and not self.released.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        finally:
            self.at_once[host] -= 1
        if host.startswith("dead"):
            return Answer(End.AGAIN, post.url, "timeout", "", heard=False)
        if host.startswith("broken"):
            raise RuntimeError("a bug")
        return Answer(End.FINAL if host.startswith("no") else End.DELIVERED, post.url)

    async def close(self) -> None:
        """Nothing is open."""


class Desk:
    """Hands work in, and waits for what comes back."""

    def __init__(self) -> None:
        self.net = Net()
        self.results: SimpleQueue[tuple[WorkId, Work, Answer]] = SimpleQueue()
        self.means = SenderDependencies(lambda: self.net, Secrets({}), SystemClock(), PER_HOST)
        self.sender = HttpSender(self.means, lambda *result: self.results.put(result))
        self.sender.start()
        self._number = 0

    def hand_in(self, *hosts: str, ordering_key: str = "", body: bytes = b"", **state: Any) -> None:
        """One piece of work for these hosts together."""
        self._number += 1
        targets = tuple(HttpTarget(f"http://{host}/", **state) for host in hosts)
        event = FiredEvent("demo", "a", "f", 1, 0, 0, 0, 0, payload=body)
        key = (ordering_key or str(self._number)).encode()
        strategy = targets[0].strategy
        work = Work(key, b"", event, [], DeliveryState(targets, strategy, hosts=("*.com",)))
        self.sender.hand_in([(WorkId(1, 0, self._number), work)])

    def wait(self, number: int) -> list[tuple[int, Answer]]:
        """So many results: numbers of the pieces, in the order of their ends."""
        found = [self.results.get(timeout=WAIT_S) for _ in range(number)]
        return [(work_id.offset, answer) for work_id, _, answer in found]


@pytest.fixture
def site() -> Iterator[Desk]:
    site = Desk()
    yield site
    site.sender.stop()


class SlowNet(Net):
    """A transport that keeps the loop busy for a few steps a post, and notes how long each took."""

    def __init__(self) -> None:
        super().__init__()
        self.took_s: list[float] = []

    async def post(self, post: Post) -> Answer:
        began = time.monotonic()
        for _ in range(STEPS):
            time.sleep(STEP_S)  # noqa: ASYNC251  # work that the loop has to do
            await asyncio.sleep(0)
        self.took_s.append(time.monotonic() - began)
        return Answer(End.DELIVERED, post.url)


def flood(attempts: list[int]) -> tuple[list[int], SlowNet, float]:
    """Have pieces of these attempts posted; numbers in their order of ends, and what it took."""
    net, results = SlowNet(), SimpleQueue[Any]()
    means = SenderDependencies(lambda: net, Secrets({}), SystemClock(), PER_HOST)
    sender = HttpSender(means, lambda *result: results.put(result))
    event = FiredEvent("demo", "a", "f", 1, 0, 0, 0, 0)
    for number, attempt in enumerate(attempts):
        state = DeliveryState((HttpTarget(f"http://ok{number}.com/"),), attempt=attempt)
        work = Work(str(number).encode(), b"", event, [], state)
        sender.hand_in([(WorkId(1, 0, number), work)])
    sender.start()
    began = time.monotonic()
    arrived = [results.get(timeout=WAIT_S)[0].offset for _ in attempts]
    took_s = time.monotonic() - began
    sender.stop()
    return arrived, net, took_s


def test_a_flood_is_posted_piece_by_piece_so_that_no_post_takes_long() -> None:
    arrived, net, took_s = flood([1] * FLOOD)
    assert arrived == list(range(FLOOD))
    # Begun all at once, each would take as long as all of them.
    assert max(net.took_s) < took_s / 3


def test_first_attempts_go_before_others_which_have_their_turn() -> None:
    arrived, _, _ = flood([2] * FLOOD + [1] * FLOOD)
    begun = arrived[:FLOOD]
    others = [number for number in begun if number < FLOOD]
    assert others == list(range(len(others)))
    assert FLOOD / 10 < len(others) < FLOOD / 6


def test_hosts_that_hang_do_not_hold_up_the_others(site: Desk) -> None:
    for number in range(200):
        site.hand_in(f"hang{number % 20}.com")
        site.hand_in(f"ok{number % 20}.com")
    done = site.wait(200)
    assert {number % 2 for number, _ in done} == {0}
    assert {answer.end for _, answer in done} == {End.DELIVERED}
    assert sum(site.net.at_once.values()) == 20 * PER_HOST
    assert site.results.empty()
    site.net.released.set()
    assert len(site.wait(200)) == 200
    assert max(site.net.most.values()) == PER_HOST


def test_a_lane_keeps_its_order_and_others_pass_it(site: Desk) -> None:
    site.hand_in("hang.com", ordering_key="g", body=b"0")
    for number in range(1, 50):
        site.hand_in("ok.com", ordering_key="g", body=str(number).encode())
    site.hand_in("ok.com", ordering_key="h", body=b"other")
    assert site.wait(1)[0][0] == 51
    assert site.net.posted == [("hang.com", b"0"), ("ok.com", b"other")]
    site.net.released.set()
    assert [number for number, _ in site.wait(50)] == list(range(1, 51))
    bodies = [body for _, body in site.net.posted if body != b"other"]
    assert bodies == [str(number).encode() for number in range(50)]


def test_a_silent_host_is_left_alone(site: Desk) -> None:
    for number in range(FAILURES + 20):
        site.hand_in("dead.com", ordering_key="g", body=str(number).encode())
    ends = Counter(answer.end for _, answer in site.wait(FAILURES + 20))
    # A machine that is very slow may let one more through, when the first pause is over.
    assert FAILURES <= ends[End.AGAIN] <= FAILURES + 2
    assert ends[End.POSTPONED] == FAILURES + 20 - ends[End.AGAIN]
    site.hand_in("ok.com")
    assert site.wait(1)[0][1].end is End.DELIVERED


def test_the_first_that_is_available_takes_it(site: Desk) -> None:
    site.hand_in("no.com", "dead.com", "ok.com", "late.com", strategy="FIRST_AVAILABLE")
    ((_, answer),) = site.wait(1)
    assert answer.target == "http://ok.com/"
    assert [host for host, _ in site.net.posted] == ["no.com", "dead.com", "ok.com"]


@pytest.mark.parametrize(
    ("host", "state", "end", "code"),
    [
        ("ok.org", {}, End.FINAL, "target_not_allowed"),
        ("ok.com", {"secret_ref": "none"}, End.AGAIN, "no_secret"),
        ("broken.com", {}, End.AGAIN, "internal"),
    ],
)
def test_what_cannot_be_sent_comes_back_with_a_reason(
    site: Desk, host: str, state: dict[str, Any], end: End, code: str
) -> None:
    site.hand_in(host, **state)
    ((_, answer),) = site.wait(1)
    assert (answer.end, answer.code) == (end, code)


def test_what_was_given_up_does_not_come_back(site: Desk) -> None:
    site.hand_in("hang.com")
    site.sender.drop()
    site.hand_in("ok.com")
    assert [number for number, _ in site.wait(1)] == [2]
    site.net.released.set()
    site.hand_in("ok.com")
    assert [number for number, _ in site.wait(1)] == [3]


def test_names_that_do_not_resolve_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are asked for side by side: none is answered before the last one is asked for."""
    names = 32
    asked, found = threading.Barrier(names), list[str]()

    def resolve(host: str, *_args: Any, **_more: Any) -> Any:
        asked.wait(WAIT_S)
        found.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    site = Desk()
    means = SenderDependencies(
        lambda: HttpTransport(SystemClock(), ()), Secrets({}), SystemClock(), PER_HOST
    )
    site.sender._means = means
    try:
        for number in range(names):
            site.hand_in(f"n{number}.com")
        assert {answer.code for _, answer in site.wait(names)} == {"dns"}
        assert set(found) == {f"n{number}.com" for number in range(names)}
    finally:
        site.sender.stop()
