"""Moves of key groups by `belfry rebalance`: a few at once, waited for, and told one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from belfry.cli import rebalance, rebalance_stuck
from belfry.cli.failures import CommandError
from belfry.cli.program import program
from belfry.cli.rebalance_moves import MoveOutcome, Mover, WantedMove, stands
from belfry.cli.rebalance_status import status_lines
from belfry.cli.remote import WorkerRefusal

PARTITIONS = 4


class Worker:
    """Groups that are where they were asked to be at the look after the next one."""

    def __init__(self, slow: int = 1) -> None:
        self.slow = slow
        self.under_way: dict[int, list[int]] = {}
        self.lies: dict[int, int] = {}
        self.most = 0
        self.asked: list[tuple[int, int]] = []
        self.refuses: list[Exception] = []
        self.stays: dict[int, str] = {}
        self.stuck: dict[int, str] = {}
        self.ended: list[dict[str, Any]] = []
        self.away = 0
        self.policies: dict[str, dict[str, Any]] = {}
        self.missing: list[int] = []
        self.now_s = 0.0

    def ask(self, method: str, path: str, body: dict[str, int]) -> dict[str, Any]:
        assert method == "POST"
        if self.refuses:
            raise self.refuses.pop(0)
        group, target = int(path.split("/")[3]), body["target"]
        self.asked.append((group, target))
        self.stuck.pop(group, None) if target == self.lies.get(group, group % 4) else None
        self.under_way[group] = [target, self.slow]
        self.most = max(self.most, len(self.under_way))
        return {"group": group, "move": 100 + group, "target": target}

    def get(self, path: str) -> dict[str, Any]:
        if path.startswith("/v1/tenants/"):
            return self.policy(path.rpartition("/")[2])
        assert path == "/v1/key-groups"
        if self.away:
            self.away -= 1
            raise CommandError("No worker answers.")
        for group, (target, left) in list(self.under_way.items()):
            if group in self.stuck:
                continue
            if left:
                self.under_way[group][1] -= 1
            elif group in self.stays:
                end = {"source": group % 4, "target": target, "why": self.stays[group]}
                self.ended.append({"group": group, "move": 100 + group, **end})
                del self.under_way[group]
            else:
                self.lies[group] = target
                del self.under_way[group]
        shown: dict[int, tuple[str, int, int | None]]
        shown = {group: ("rests", lies, None) for group, lies in self.lies.items()}
        for group, (target, _) in self.under_way.items():
            lies = self.lies.get(group, group % 4)
            shown[group] = (self.stuck.get(group, "moving"), lies, target)
        return {
            "partitions": PARTITIONS, "groups": 4096, "allowed": True, "refusing": [],
            "releases": ["1"], "silent": [], "missing": self.missing, "ended": self.ended,
            "key_groups": [
                {"group": group, "home": group % 4, "state": state, "lies": lies, "goes": goes,
                 "move": 1, "records": 0, "waiting": 0}
                for group, (state, lies, goes) in shown.items()
                if (state, lies) != ("rests", group % 4)
            ],
        }  # fmt: skip

    def policy(self, tenant: str) -> dict[str, Any]:
        if tenant not in self.policies:
            raise WorkerRefusal("no policy", 404, "no_policy")
        return self.policies[tenant]

    def sleep(self, pause_s: float) -> None:
        self.now_s += pause_s


def mover(worker: Worker, at_once: int = 1, limit_s: float = 10.0) -> Mover:
    clock: Any = (lambda: worker.now_s, worker.sleep)
    return Mover(worker, at_once, limit_s, clock)  # type: ignore[arg-type]


def wanted(*groups: int, target: int = 1) -> list[WantedMove]:
    return [WantedMove(group, group % 4, target) for group in groups]


def quiet(_what: str, _done: int, _of: int) -> None:
    """Nobody looks."""


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_are_on_their_way_at_once_and_no_more(at_once: int) -> None:
    worker, told = Worker(), list[tuple[int, int]]()
    moves = wanted(*range(0, 40, 4))
    done = mover(worker, at_once).carry_out(moves, lambda _, *counts: told.append(counts))
    assert sorted(done) == [MoveOutcome(each, None) for each in moves]
    assert worker.most == at_once
    assert told[-1] == (10, 10)
    assert set(worker.lies.values()) == {1}


def test_one_that_comes_home_is_there_when_nobody_tells_of_it_any_more() -> None:
    worker = Worker()
    worker.lies[7] = 1
    home = WantedMove(7, 1, 3)
    assert mover(worker).carry_out([home], quiet) == [MoveOutcome(home, None)]


def test_what_was_moved_before_is_not_asked_for_again() -> None:
    worker = Worker()
    worker.refuses = [WorkerRefusal("there already", 409, "lies_there")]
    done = mover(worker).carry_out(wanted(0, 4), quiet)
    assert [each.wanted.group for each in done] == [0, 4]
    assert worker.asked == [(4, 1)]


def test_a_group_that_stays_is_told_with_the_reason_and_the_others_go_on() -> None:
    worker = Worker()
    worker.stays[4] = "job: a bulk job of tenant shop is under way"
    done = mover(worker).carry_out(wanted(0, 4, 8), quiet)
    assert [each.why for each in done] == [None, worker.stays[4], None]
    assert worker.lies == {0: 1, 8: 1}


def test_what_passes_by_itself_is_waited_for() -> None:
    worker = Worker()
    worker.refuses = [WorkerRefusal("a worker is away", 503, "workers_silent")] * 3
    worker.refuses += [CommandError("No worker answers.")] * 3
    worker.away = 3
    assert len(mover(worker).carry_out(wanted(0, 4), quiet)) == 2


@pytest.mark.parametrize("code", ["workers_silent", "group_moves"])
def test_for_no_longer_than_the_limit(code: str) -> None:
    worker = Worker()
    worker.refuses = [WorkerRefusal("not now", 503, code)] * 100
    with pytest.raises(WorkerRefusal, match="not now"):
        mover(worker, limit_s=2.0).carry_out(wanted(0), quiet)
    assert 2.0 < worker.now_s < 3.0


def test_where_nothing_may_move_it_ends_at_once() -> None:
    worker = Worker()
    worker.refuses = [WorkerRefusal("of several releases", 409, "mixed_releases")]
    with pytest.raises(WorkerRefusal, match="several releases"):
        mover(worker).carry_out(wanted(0, 4), quiet)
    assert worker.now_s == 0


def test_one_whose_target_does_not_answer_is_called_off() -> None:
    worker = Worker()
    worker.stuck[0] = "asked"
    done = mover(worker, limit_s=2.0).carry_out(wanted(0, 4), quiet)
    assert [each.why and each.why[:10] for each in done] == ["its target", None]
    assert worker.asked == [(0, 1), (0, 0), (4, 1)]


@pytest.mark.parametrize("state", ["moving", "arriving"])
def test_one_that_does_not_arrive_ends_the_command(state: str) -> None:
    worker = Worker()
    worker.stuck[0] = state
    with pytest.raises(CommandError, match=rf"on its way from 0 to 1 .*{state}.*status"):
        mover(worker, limit_s=2.0).carry_out(wanted(0, 4), quiet)
    assert worker.asked == [(0, 1)]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> tuple[Worker, Callable[..., Any]]:
    worker = Worker(slow=0)
    for module in (rebalance, rebalance_stuck):
        monkeypatch.setattr(module, "Remote", lambda _session: worker)
    runner = CliRunner()
    return worker, lambda *words: runner.invoke(program(), ["rebalance", *words])


def test_tenants_are_moved_by_name(command: tuple[Worker, Callable[..., Any]]) -> None:
    worker, run = command
    dry = run("move", "shop", "cars", "--to", "3", "--dry-run", "--output", "json")
    assert dry.exit_code == 0, dry.output
    assert [each["group"] for each in orjson.loads(dry.stdout)["moves"]] == [1684, 1912]
    assert worker.asked == []
    ran = run("move", "shop", "cars", "--to", "3", "--yes", "--output", "json")
    assert ran.exit_code == 0, ran.output
    assert orjson.loads(ran.stdout)["moved"] == 2
    assert worker.lies == {1684: 3, 1912: 3}
    again = run("move", "shop", "--to", "3", "--yes")
    assert "0 key groups would move" in again.output


@pytest.mark.parametrize(("spread", "former"), [(3, []), (3, [1]), (1, [3])])
def test_a_tenant_that_is_spread_is_not_said_to_have_moved(
    command: tuple[Worker, Callable[..., Any]], spread: int, former: list[int]
) -> None:
    """Its group would move without its schedules, which stay."""
    worker, run = command
    worker.policies["shop"] = {"spread": spread, "former_spreads": former}
    worker.policies["cars"] = {"spread": 1, "former_spreads": []}
    refused = run("move", "cars", "shop", "--to", "3", "--yes")
    assert refused.exit_code == 1
    assert "Tenant shop is spread, or was" in str(refused.exception)
    assert worker.asked == []
    assert run("move", "cars", "--to", "3", "--yes").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [("move", "shop", "--to", "3", "--yes"), ("call-off", "1684"), ("resend", "1684", "--yes")],
)
def test_nothing_is_done_while_nobody_tells_of_a_partition(
    command: tuple[Worker, Callable[..., Any]], words: tuple[str, ...]
) -> None:
    """A group that shows nowhere may lie elsewhere."""
    worker, run = command
    worker.missing = [0, 2]
    refused = run(*words)
    assert refused.exit_code == 1
    assert "nobody tells of partitions 0, 2" in str(refused.exception)
    assert worker.asked == []


def test_a_group_that_is_seen_is_called_off_whoever_else_does_not_tell(
    command: tuple[Worker, Callable[..., Any]],
) -> None:
    """The worker that is asked decides about it."""
    worker, run = command
    worker.missing = [2]
    worker.under_way[4], worker.stuck[4] = [1, 0], "asked"
    assert run("call-off", "4").exit_code == 0
    assert worker.asked == [(4, 0)]


def test_nobody_is_asked_where_nobody_can_be(command: tuple[Worker, Callable[..., Any]]) -> None:
    worker, run = command
    refused = run("move", "shop", "--to", "3")
    assert refused.exit_code != 0
    assert worker.asked == []


def test_a_move_that_was_only_asked_for_is_called_off(
    command: tuple[Worker, Callable[..., Any]],
) -> None:
    worker, run = command
    assert run("call-off", "4").exit_code != 0
    worker.under_way[4], worker.stuck[4] = [1, 0], "moving"
    assert run("call-off", "4").exit_code != 0
    assert worker.asked == []
    worker.stuck[4] = "asked"
    assert run("call-off", "4").exit_code == 0
    assert worker.asked == [(4, 0)]


def test_the_status_tells_what_to_do() -> None:
    worker = Worker()
    assert status_lines(worker.get("/v1/key-groups"))[-1].startswith("all 4096 key groups are at")
    worker.lies[1912] = 1
    worker.under_way = {4: [1, 1], 8: [1, 1]}
    worker.stuck = {4: "asked", 8: "arriving"}
    worker.stays[12] = "many: the group has more than 50000 rows"
    worker.under_way[12] = [2, 0]
    told = "\n".join(status_lines(worker.get("/v1/key-groups")))
    assert "  1912     0     1     -  rests " in told
    assert "\n3 of 4,096 key groups are away from home or on their way, of which 1 rests\n" in told
    assert "4: its target has not answered yet" in told
    assert "`belfry rebalance call-off 4`" in told
    assert "`belfry rebalance resend 8`" in told
    assert "12  0 -> 2  many: the group" in told
    off = {**worker.get("/v1/key-groups"), "allowed": False, "refusing": ["w2"], "missing": [3]}
    text = "\n".join(status_lines(off | {"releases": ["1", "2"], "silent": ["w3"]}))
    assert "may not move, say w2" in text
    assert "several releases" in text
    assert "w3 does not answer" in text
    assert "nobody tells of partitions 3" in text


@pytest.mark.parametrize(("homes", "lies"), [({"homes": 2}, 1), ({"homes": 4}, 3), ({}, 3)])
def test_a_group_at_home_lies_where_the_number_of_homes_says(
    homes: dict[str, int], lies: int
) -> None:
    assert stands({"key_groups": [], "partitions": 4, **homes}, 799) == ("rests", lies)
