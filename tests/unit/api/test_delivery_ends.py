"""The last fires of a schedule with the ends of their deliveries, here and at another worker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Final

import orjson
import pytest
from starlette.responses import Response

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import ANYBODY
from belfry.api.routes import delivery_ends
from belfry.api.routes.delivery_ends import DeliveryEnds
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.peers import PeerUnreachable
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.api.test_history import NOW_MS, Histories

NAME: Final = ("t", "a")
THERE: Final = "http://there"


def fire(number: int, fire_id: str | None) -> dict[str, Any]:
    """A fire, some seconds ago."""
    at = format_instant(NOW_MS - 60_000 + number * 1_000)
    return {"fire_id": fire_id, "due_at": at, "fired_at": at}


def end(number: int, outcome: Outcome, attempt: int, **more: Any) -> LifecycleEvent:
    """The end of a delivery of this fire, half a second after it."""
    due_ms = NOW_MS - 60_000 + number * 1_000
    given = {"fire_id": f"f{number}", "target": "https://u.example/?token=1", **more}
    return LifecycleEvent(
        tenant="t", schedule_id="a", outcome=outcome, at=due_ms + 500, due_at=due_ms,
        attempt=attempt, **given,
    )  # fmt: skip


class World:
    """A worker with histories, and another one that may be asked."""

    def __init__(self) -> None:
        self.histories = Histories()
        self.holder: str | None = THERE
        self.answer: Response | Exception = Response(b"{}", 503)
        self.asked: list[tuple[str, Target]] = []
        self.parts = ApiDependencies(Gate(), (), lambda: float(NOW_MS))
        directory = SimpleNamespace(mine="http://here", holder=lambda _home: self.holder)
        opened: Any = (None, None, directory, self.histories, None)
        self.parts.open(Open(*opened))
        self.parts.peers.ask = self._ask  # type: ignore[method-assign, assignment]

    async def _ask(self, url: str, target: Target, *_: Any) -> Response:
        self.asked.append((url, target))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def shown(self, *fires: dict[str, Any]) -> list[Any]:
        """The deliveries of each of these fires, as a caller sees them."""
        body = orjson.dumps({"state": "PENDING", "last_fires": fires})
        before = Response(body, 200, {"etag": '"7.3"'}, "application/json")
        answer = asyncio.run(DeliveryEnds(self.parts).added(before, NAME, ANYBODY))
        assert (answer.status_code, answer.headers["etag"]) == (200, '"7.3"')
        told = orjson.loads(answer.body)
        assert told["state"] == "PENDING"
        return [each["deliveries"] for each in told["last_fires"]]


@pytest.fixture
def world() -> World:
    return World()


def test_each_fire_has_the_ends_of_its_own_deliveries(world: World) -> None:
    failed = {"code": "http_status", "reason": "503"}
    world.histories.keep(
        world.histories.home,
        end(0, Outcome.DELIVERED, 9, fire_id="before"),
        end(1, Outcome.DELIVERED, 3),
        end(1, Outcome.FAILED, 10, **failed),
        end(2, Outcome.FIRED, 1, target=None),
        # An acknowledgement that did not come is no delivery.
        end(2, Outcome.FAILED, 1, target=None, code="ack_timeout"),
    )
    first, second = world.shown(fire(1, "f1"), fire(2, "f2"))
    at = format_instant(NOW_MS - 58_500)
    target = "https://u.example/?***"
    assert first == [
        {"target": target, "outcome": "DELIVERED", "attempt": 3, "at": at, "code": None},
        {"target": target, "outcome": "FAILED", "attempt": 10, "at": at, "code": "http_status"},
    ]
    assert second == []
    assert not world.asked


def test_a_schedule_that_is_over_is_told_by_its_due_instant(world: World) -> None:
    world.histories.keep(
        world.histories.home, end(1, Outcome.DELIVERED, 2), end(3, Outcome.DELIVERED, 4)
    )
    ((only,),) = world.shown(fire(1, None))
    assert only["attempt"] == 2


def test_a_history_elsewhere_is_asked_for_what_lies_behind_the_first_fire(world: World) -> None:
    world.histories.followed = frozenset()
    events = [{"outcome": "DELIVERED", "fire_id": "f2", "due_at": "", "target": "u", "attempt": 5}]
    told = {"events": [{**each, "at": "x", "code": None} for each in events], "cursor": None}
    world.answer = Response(orjson.dumps(told), 200)
    first, (second,) = world.shown(fire(1, "f1"), fire(2, "f2"))
    assert (first, second["attempt"]) == ([], 5)
    ((url, target),) = world.asked
    since = NOW_MS - 59_000
    assert (url, target.method, target.path) == (THERE, "GET", "/v1/tenants/t/schedules/a/history")
    assert target.query == f"from={since}&limit={delivery_ends.MOST_EVENTS}"


@pytest.mark.parametrize(
    "answer",
    [
        Response(b"{}", 503),
        PeerUnreachable("frozen"),
        Response(orjson.dumps({"events": [], "cursor": "more"}), 200),
    ],
)
def test_what_nobody_tells_is_null_and_the_fires_are_shown(
    world: World, answer: Response | Exception
) -> None:
    world.histories.followed, world.answer = frozenset(), answer
    assert world.shown(fire(1, "f1")) == [None]
    world.holder = None
    assert world.shown(fire(1, "f1")) == [None]
    assert len(world.asked) == 1


def test_a_history_that_is_too_long_or_not_open_tells_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.histories.keep(world.histories.home, *(end(n, Outcome.FAILED, 2) for n in range(1, 4)))
    assert world.shown(fire(3, "f3"))[0] is not None
    monkeypatch.setattr(delivery_ends, "MOST_EVENTS", 2)
    assert world.shown(fire(1, "f1")) == [None]
    world.histories.store = None
    assert world.shown(fire(3, "f3")) == [None]
