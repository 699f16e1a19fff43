"""Key groups over HTTP: how they stand, who may have one moved, and what stands against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from starlette.responses import Response

from belfry import __version__
from belfry.api.auth.principal import Principal, Role
from belfry.api.json.key_group_answers import KeyGroupsAnswer
from belfry.api.routes.app import create_app
from belfry.api.routes.audited import AuditedRequest, asked_by
from belfry.api.routes.key_groups import MOST_UNDER_WAY
from belfry.api.workers.acknowledgements import NotWritten
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.internal_token import Target
from belfry.api.workers.key_group_moves import KeyGroupMoves
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.peers import PeerUnreachable
from belfry.balance.assignment_map import AssignedMember, AssignmentMap
from belfry.engine.effects import Rerouted
from belfry.placement.partition_count import PartitionCount
from belfry.settings import Settings
from belfry.store.layout.groups import (
    ASKED,
    HELD,
    HERE,
    NOWHERE,
    RESTS,
    GroupRow,
    encode_group,
    home_key,
    lies_key,
)
from belfry.store.layout.keys import named_key
from belfry.store.ordered_map import MemoryMap
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.move_metrics import EndedMove
from belfry.wire.moves import MOVE, MoveRecord, decode_move, is_move
from belfry.wire.origins import believed_origin
from belfry.wire.worker_keys import Purpose
from tests.unit.api.conftest import FakeWorker
from tests.unit.api.test_policies import principals

PATH = "/v1/key-groups"
PARTITIONS = 4
SECRET = "a secret of these workers"
# Its home is partition 3.
GROUP = 7
MOVED = f"{PATH}/{GROUP}/move"


class Holdings:
    """Partitions 0 to 2 of four; partition 2 is given up amid the look."""

    def __init__(self, held: list[int]) -> None:
        self.rows = {number: MemoryMap() for number in held}

    def held(self) -> list[int]:
        return [*self.rows, 9]

    def read(self, partition: int, look: Callable[[Any], Any]) -> Any:
        if partition not in self.rows:
            raise NotHeld(partition)
        return look(self.rows[partition])


class Door:
    """An application of a worker that holds all partitions, and who asks it."""

    def __init__(self, **settings: Any) -> None:
        given = {"key_group_moves": True, "http_worker_secret": SecretStr(SECRET), **settings}
        self.settings = Settings(**given)
        self.view = FakeWorker()
        self.members = [AssignedMember("worker-1", __version__)]
        self.view.assignment_map = lambda: AssignmentMap(tuple(self.members))  # type: ignore[method-assign]
        callers = (
            Principal("platform", ("*",), Role.OPERATE),
            Principal("reads", ("*",), Role.READ),
            Principal("some", ("shop",), Role.OPERATE),
        )
        self.parts = ApiDependencies(principals(*callers), (), lambda: 5_000.0)
        self.holdings = Holdings(list(range(PARTITIONS)))
        self.written: list[Rerouted] = []
        self.fails: Exception | None = None
        self.counted = PartitionCount(PARTITIONS)
        moves = KeyGroupMoves(self.settings, self.counted, self._put)
        opened: Any = (SimpleNamespace(), self.holdings, None, None, None, None, None, moves)
        self.parts.open(Open(*opened))
        self.metrics = Metrics(CollectorRegistry())
        app = create_app(self.view, self.metrics, (), self.parts)
        self.client = TestClient(app, base_url="http://127.0.0.1:8700")

    async def _put(self, record: Rerouted, _timeout_s: float) -> int:
        if self.fails is not None:
            raise self.fails
        self.written.append(record)
        return 70

    def stand(self, partition: int, group: int, row: GroupRow, *, home: bool = True) -> None:
        key = home_key(group) if home else lies_key(group)
        self.holdings.rows[partition].write({named_key(key): encode_group(row)})

    def get(self, who: str = "platform", **query: Any) -> Any:
        return self.client.get(PATH, params=query, headers={"authorization": f"Bearer {who}"})

    def move(self, target: Any = 1, path: str = MOVED, who: str = "platform") -> Any:
        given = {"authorization": f"Bearer {who}"}
        return self.client.post(path, json={"target": target}, headers=given)


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_move_is_a_signed_record_at_the_home(door: Door) -> None:
    answer = door.move()
    assert answer.status_code == 202, answer.text
    assert answer.json() == {"group": 7, "home": 3, "source": 3, "target": 1, "move": 70}
    (written,) = door.written
    record = (70, 5_000, written.key, written.value, written.headers)
    assert written.partition == 3
    assert is_move(record)
    assert decode_move(written.value or b"") == MoveRecord(MOVE, GROUP, 1)
    keys = door.settings.worker_keys(Purpose.ORIGIN)
    assert believed_origin(keys, record, "belfry.schedules", 3).rerouted
    assert not believed_origin((b"another",), record, "belfry.schedules", 3).rerouted


def test_a_move_is_told_by_the_name_that_its_home_gives_it(door: Door) -> None:
    """The input was made anew: its offsets are lower than the move by which the group came."""
    door.stand(3, GROUP, GroupRow(RESTS, 1, NOWHERE, 1_000))
    door.stand(1, GROUP, GroupRow(HERE, 1, NOWHERE, 1_000), home=False)
    assert door.move(2).json()["move"] == 1_001
    door.stand(3, GROUP, GroupRow(RESTS, 1, NOWHERE, 40))
    assert door.move(2).json()["move"] == 70


def test_what_moved_is_shown_with_how_far_it_is(door: Door) -> None:
    door.stand(3, GROUP, GroupRow(RESTS, 1, NOWHERE, 40))
    door.stand(1, GROUP, GroupRow(HERE, 1, NOWHERE, 40), home=False)
    door.metrics.moves.ends(EndedMove(9, 44, 1, 2, "job: a bulk job of tenant shop is under way"))
    told = door.get("reads").json()
    assert (told["groups"], told["partitions"], told["allowed"]) == (4096, 4, True)
    assert (told["missing"], told["silent"], told["refusing"]) == ([], [], [])
    assert told["key_groups"] == [
        {
            "group": 7,
            "home": 3,
            "state": "rests",
            "lies": 1,
            "goes": None,
            "move": 40,
            "records": 0,
            "waiting": 0,
        }
    ]
    assert [each["why"][:3] for each in told["ended"]] == ["job"]
    # The other workers are asked so.
    alone = door.get(alone=True).json()
    assert (alone["read"], len(alone["rows"]), alone["key_groups"]) == ([0, 1, 2, 3], 2, [])


@pytest.mark.parametrize(("who", "status"), [("reads", 403), ("some", 403)])
def test_groups_are_everybodys(door: Door, who: str, status: int) -> None:
    assert door.move(who=who).status_code == status
    assert door.get("some").status_code == 403
    assert door.written == []


def test_where_no_group_may_move_none_does() -> None:
    door = Door(key_group_moves=False)
    answer = door.move()
    assert (answer.status_code, answer.json()["code"]) == (409, "moves_not_allowed")
    assert "BELFRY_KEY_GROUP_MOVES" in answer.json()["detail"]
    assert door.get().json()["allowed"] is False
    assert door.written == []


@pytest.mark.parametrize(
    ("path", "target", "status", "code"),
    [
        (f"{PATH}/4096/move", 1, 404, "no_key_group"),
        (MOVED, 4, 422, "no_partition"),
        (MOVED, 3, 409, "lies_there"),
        (MOVED, -1, 422, "bad_fields"),
        (MOVED, "1", 422, "bad_fields"),
    ],
)
def test_what_cannot_be_asked_for(
    door: Door, path: str, target: Any, status: int, code: str
) -> None:
    answer = door.move(target, path)
    assert answer.status_code == status, answer.text
    if code != "bad_fields":
        assert answer.json()["code"] == code
    assert door.written == []


def test_a_group_moves_to_a_partition_that_was_added(door: Door) -> None:
    assert door.move(5).json()["code"] == "no_partition"
    door.counted.grown(6)
    told = door.get().json()
    assert (told["homes"], told["partitions"], told["groups"]) == (4, 6, 4096)
    # Partitions that were just added have no owner, so not all is known yet.
    assert told["missing"] == [4, 5]
    assert door.move(5).json()["code"] == "workers_silent"
    door.holdings.rows |= {4: MemoryMap(), 5: MemoryMap()}
    answer = door.move(5)
    assert (answer.status_code, answer.json()["home"]) == (202, 3)


def test_what_one_worker_does_not_know_of_yet_is_nobodys(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.counted.grown(6)
    door.members.append(AssignedMember("worker-2", __version__, "http://other"))
    other = KeyGroupsAnswer(groups=4096, partitions=4, homes=4, allowed=True)

    async def ask_others(*_: Any) -> Any:
        return SimpleNamespace(told={"worker-2": other}, silent=[])

    monkeypatch.setattr("belfry.api.routes.key_groups.ask_others", ask_others)
    assert door.get().json()["partitions"] == 4
    assert door.move(5).json()["code"] == "no_partition"


@pytest.mark.parametrize(("said", "homes"), [({"homes": 4}, 4), ({}, 0)])
def test_one_that_does_not_know_of_growth_is_told_whatever_release_it_calls_itself(
    door: Door, monkeypatch: pytest.MonkeyPatch, said: dict[str, int], homes: int
) -> None:
    door.members.append(AssignedMember("worker-2", __version__, "http://other"))
    known = {"groups": 4096, "partitions": 4, "allowed": True, "releases": [__version__]}
    other = KeyGroupsAnswer.model_validate(known | said)

    async def ask_others(*_: Any) -> Any:
        return SimpleNamespace(told={"worker-2": other}, silent=[])

    monkeypatch.setattr("belfry.api.routes.key_groups.ask_others", ask_others)
    assert door.get().json()["homes"] == homes


def test_a_group_that_is_on_its_way_moves_nowhere_else(door: Door) -> None:
    door.stand(3, GROUP, GroupRow(HELD, 3, 1, 40))
    answer = door.move(2)
    assert (answer.status_code, answer.json()["code"]) == (409, "group_moves")


def test_what_was_only_asked_is_called_off(door: Door) -> None:
    door.stand(3, GROUP, GroupRow(ASKED, 3, 1, 40))
    assert door.move(3).status_code == 202
    assert door.move(2).status_code == 202


def test_no_more_than_a_few_are_on_their_way(door: Door) -> None:
    for number in range(MOST_UNDER_WAY):
        door.stand(0, 4 * number, GroupRow(HELD, 0, 1, 40))
    answer = door.move()
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_moves")


@pytest.mark.parametrize("release", ["0.0.1", "99.0.0"])
def test_among_several_releases_nothing_moves(door: Door, release: str) -> None:
    door.members.append(AssignedMember("worker-2", release))
    answer = door.move()
    assert (answer.status_code, answer.json()["code"]) == (409, "mixed_releases")
    assert release in answer.json()["detail"]
    assert door.written == []


def test_a_worker_that_does_not_answer_stands_against_it(door: Door) -> None:
    door.members.append(AssignedMember("worker-2", __version__, "http://other"))
    asked: list[Target] = []

    async def ask(_url: str, target: Target, _who: Principal, _headers: Any) -> Response:
        asked.append(target)
        raise PeerUnreachable("it sleeps")

    door.parts.peers.ask = ask  # type: ignore[method-assign, assignment]
    answer = door.move()
    assert (answer.status_code, answer.json()["code"]) == (503, "workers_silent")
    assert "worker-2" in answer.json()["detail"]
    assert asked[0] == Target("GET", PATH, "alone=true")
    assert door.written == []


def test_one_that_does_not_allow_moves_is_named(door: Door) -> None:
    door.members.append(AssignedMember("worker-2", __version__, "http://other"))
    told = KeyGroupsAnswer(groups=4096, partitions=4, allowed=False, refusing=["worker-2"])

    async def ask(*_: Any) -> Response:
        return Response(told.model_dump_json(), 200)

    door.parts.peers.ask = ask  # type: ignore[method-assign, assignment]
    answer = door.move()
    assert (answer.status_code, answer.json()["code"]) == (409, "moves_not_allowed")
    assert "worker-2" in answer.json()["detail"]


def test_a_partition_that_nobody_holds_stands_against_it(door: Door) -> None:
    del door.holdings.rows[2]
    assert door.get().json()["missing"] == [2]
    assert door.move().json()["code"] == "workers_silent"


def test_what_kafka_does_not_confirm_is_told(door: Door) -> None:
    door.fails = NotWritten("no answer in time")
    answer = door.move()
    assert (answer.status_code, answer.json()["code"]) == (503, "not_written")


def test_a_dispatcher_moves_nothing(door: Door) -> None:
    door.parts.open(replace(door.parts.ready, moves=None))
    assert door.move().status_code == 503
    assert door.get().status_code == 503


def test_who_had_a_group_moved_is_in_the_audit_log() -> None:
    assert asked_by("POST", MOVED) == AuditedRequest("key_group.move", None, "7")
    assert asked_by("GET", PATH) == AuditedRequest("read")
