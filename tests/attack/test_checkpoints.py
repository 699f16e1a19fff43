"""Checkpoints hold payloads of all tenants: workers get them, nobody else, and nothing but them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import Principal, Role
from belfry.api.problems import Problem
from belfry.api.workers.checkpoint_door import MOST_AT_ONCE, CheckpointDoor
from belfry.api.workers.internal_token import FORWARDED, FRESH_MS, InternalToken, Target
from belfry.recovery.checkpoint_peers import PATH
from belfry.store.checkpoint import decode_index
from belfry.wire.worker_keys import Purpose, keys_of
from tests.attack.door import Answer, Door
from tests.unit.recovery.checkpoints import FAR, NOW_MS, PEERS, Net, Worker, commit, store

SECRETS: Final = (b"the secret of all workers",)
MINE: Final = "https://one.example:8080"
KEY: Final = "belfry_" + "k" * 43
ALL: Final = Principal("worker", ("*",), Role.OPERATE)
# What must never come out: it lies beside the checkpoints, on the same disk.
BESIDE: Final = b"somebody's private key"


def token(purpose: Purpose = Purpose.CHECKPOINTS, secrets: Any = SECRETS, at: int = NOW_MS) -> Any:
    return InternalToken(keys_of(secrets, purpose), Gate(), lambda: float(at))


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    found = Worker(tmp_path / "one", None, net=Net())
    (found.home / "secret").write_bytes(BESIDE)
    rows = store(found.home / "partition-3")
    commit(rows, FAR, b"first")
    found.turn(rows)
    yield found
    rows.close()


@pytest.fixture
def door(worker: Worker) -> Iterator[Door]:
    keys = [{"name": "all", "sha256": KEY, "role": "operate", "tenants": ["*"]}]
    found = Door(
        keys, opened=True, checkpoints=CheckpointDoor(worker.served, token(), 1e12, mine=MINE)
    )
    yield found
    found.close()


def asked(
    door: Door, path: str, by: InternalToken, signed: str | None = None, url: str = MINE
) -> Answer:
    """The answer to a question that a worker has signed, for this path and address or others."""
    bare, _, query = (signed or path).partition("?")
    return door("GET", path, {FORWARDED: by.write(Target("GET", bare, query).at(url), ALL)})


def a_file(worker: Worker) -> str:
    """The path of a file of the checkpoint that is not empty."""
    index = worker.served.index(3)
    assert index is not None
    (first, *_) = [each for each in decode_index(index, PEERS).files if each.size]
    return f"{PATH}/3/{first.sha256}?from=0"


def test_a_worker_is_answered(door: Door, worker: Worker) -> None:
    index = asked(door, f"{PATH}/3", token())
    assert (index.status, index.body) == (200, worker.served.index(3))
    piece = asked(door, a_file(worker), token())
    assert piece.status == 200
    assert len(piece.body) == int(piece.headers["content-length"]) > 0
    assert asked(door, f"{PATH}/2", token()).status == 404


@pytest.mark.parametrize("path", ["index", "file"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": f"Bearer {KEY}"},
        {FORWARDED: ""},
        {FORWARDED: "."},
        {FORWARDED: "00.00"},
        {FORWARDED: "é.é"},
        {FORWARDED: "ff" * 4_000},
        {FORWARDED: "", "authorization": f"Bearer {KEY}"},
    ],
)
def test_no_key_of_a_caller_opens_them(
    door: Door, worker: Worker, path: str, headers: dict[str, str]
) -> None:
    answer = door("GET", f"{PATH}/3" if path == "index" else a_file(worker), headers)
    assert answer.status == 401
    assert json.loads(answer.body)["status"] == 401


TOKENS: Final = {
    "what workers sign for callers": token(Purpose.FORWARD),
    "rows of the changelog": token(Purpose.CHANGELOG),
    "another cluster's secret": token(secrets=(b"the secret of another cluster",)),
    "the secret itself": InternalToken(SECRETS, Gate(), lambda: float(NOW_MS)),
    "no secret": token(secrets=()),
    "too old": token(at=NOW_MS - FRESH_MS - 1),
    "from tomorrow": token(at=NOW_MS + FRESH_MS + 1),
}


@pytest.mark.parametrize("by", TOKENS.values(), ids=TOKENS)
def test_no_other_signature_opens_them(door: Door, worker: Worker, by: InternalToken) -> None:
    for path in (f"{PATH}/3", a_file(worker)):
        assert asked(door, path, by).status == 401


def test_a_signature_is_worth_nothing_for_another_question(door: Door, worker: Worker) -> None:
    assert asked(door, a_file(worker), token(), signed=f"{PATH}/3").status == 401
    assert asked(door, f"{PATH}/3", token(), signed=f"{PATH}/2").status == 401
    assert asked(door, a_file(worker), token(), signed=a_file(worker)[:-1] + "1").status == 401


def test_a_question_that_a_stranger_was_asked_opens_nothing_here(
    door: Door, worker: Worker
) -> None:
    """Who may join the group is asked at an address of his own, and could pass the question on."""
    for path in (f"{PATH}/3", a_file(worker)):
        for url in ("https://stranger.example:8080", f"{MINE}0", ""):
            assert asked(door, path, token(), url=url).status == 401


def test_who_has_no_secret_serves_nobody(worker: Worker) -> None:
    """Not even where callers are not asked who they are."""
    open_to_all = token(secrets=())
    door = Door(
        [], opened=True, checkpoints=CheckpointDoor(worker.served, open_to_all, 1e12, mine=MINE)
    )
    assert asked(door, f"{PATH}/3", open_to_all).status == 401
    assert door("GET", f"{PATH}/3").status == 401
    door.close()


def test_who_keeps_none_has_no_such_address() -> None:
    door = Door([], opened=True)
    assert asked(door, f"{PATH}/3", token()).status == 404
    door.close()


@pytest.mark.parametrize(
    "path",
    [
        f"{PATH}/3/../secret?from=0",
        f"{PATH}/3/..%2fsecret?from=0",
        f"{PATH}/3/..%2F..%2F..%2Fetc%2Fpasswd?from=0",
        f"{PATH}/3/%2e%2e%2fsecret?from=0",
        f"{PATH}/3/%252e%252e%252fsecret?from=0",
        f"{PATH}/3/CURRENT?from=0",
        f"{PATH}/3/{'ab' * 32}?from=0",
        f"{PATH}/3/{'AB' * 32}?from=0",
        f"{PATH}/3/{'ab' * 32}%00?from=0",
        f"{PATH}/3/{'ab' * 32}%0a?from=0",
        f"{PATH}/3//etc/passwd",
        f"{PATH}/..%2f..%2fsecret",
        f"{PATH}/../secret",
        f"{PATH}/3%2f..%2fsecret",
        f"{PATH}/%D9%A3",
        f"{PATH}/-3",
        f"{PATH}/3.0",
        f"{PATH}/{'3' * 5_000}",
        f"{PATH}/",
        PATH,
    ],
)
def test_nothing_that_is_asked_for_becomes_a_path(door: Door, path: str) -> None:
    answer = asked(door, path, token())
    assert answer.status in (401, 404), answer
    assert BESIDE not in answer.body
    assert b"root:" not in answer.body


@pytest.mark.parametrize("start", ["-1", "1e3", "", "x", "0x0", "9" * 19, "1%00", "%D9%A3"])
def test_a_place_in_a_file_is_a_number(door: Door, worker: Worker, start: str) -> None:
    assert asked(door, a_file(worker)[:-1] + start, token()).status == 404


def test_a_place_behind_the_end_gives_nothing(door: Door, worker: Worker) -> None:
    answer = asked(door, a_file(worker)[:-1] + "9" * 18, token())
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_is_changed_there(door: Door, method: str) -> None:
    assert door(method, f"{PATH}/3", {FORWARDED: "x"}).status == 405


def test_only_so_many_are_served_at_once_and_each_gives_its_place_back(
    door: Door, worker: Worker
) -> None:
    given = CheckpointDoor(worker.served, token(), 1e12, mine=MINE)
    busy = Door([], opened=True, checkpoints=given)
    for _ in range(3 * MOST_AT_ONCE):
        assert asked(busy, a_file(worker), token()).status == 200
        assert asked(busy, f"{PATH}/3/{'ab' * 32}?from=0", token()).status == 404
    (first, *_) = [given.enter() for _ in range(MOST_AT_ONCE)]
    answer = asked(busy, a_file(worker), token())
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    given.leave(first)
    assert asked(busy, a_file(worker), token()).status == 200
    busy.close()


def test_a_place_that_nobody_gave_back_is_free_again(worker: Worker) -> None:
    now = [10.0]
    given = CheckpointDoor(worker.served, token(), 1e12, lambda: now[0], mine=MINE)
    for _ in range(MOST_AT_ONCE):
        given.enter()
    now[0] += 60
    with pytest.raises(Problem):
        given.enter()
    now[0] += 1
    given.enter()


def test_pieces_have_their_turn(worker: Worker) -> None:
    now = [10.0]
    given = CheckpointDoor(worker.served, token(), 1_000.0, lambda: now[0], mine=MINE)
    assert [given.wait_s(500) for _ in range(3)] == [0.0, 0.5, 1.0]
    given.unused(500)
    assert given.wait_s(100) == 1.0
    now[0] += 60
    assert given.wait_s(500) == 0.0
