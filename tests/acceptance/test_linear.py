"""The judge of histories: it accepts what an atomic schedule may answer, and nothing else."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from tests.acceptance.harness.linear import NOTHING, Call, following, linearizable, shortest

GOOD = {
    "one after the other": [
        Call("put", "1", 201, 0, 1),
        Call("get", "1", 200, 2, 3),
        Call("delete", "", 200, 4, 5),
        Call("get", NOTHING, 404, 6, 7),
    ],
    "a look amid a write sees either": [
        Call("put", "1", 201, 0, 1),
        Call("put", "2", 200, 2, 9),
        Call("get", "1", 200, 3, 4),
        Call("get", "2", 200, 5, 6),
    ],
    "an unanswered write counts late": [
        Call("put", "1", 201, 0, 1),
        Call("delete", "", 0, 2, inf),
        Call("get", "1", 200, 3, 4),
        Call("get", NOTHING, 404, 5, 6),
    ],
    "an unanswered write never counts": [
        Call("put", "1", 0, 0, inf),
        Call("get", NOTHING, 404, 3, 4),
        Call("create", "2", 201, 5, 6),
    ],
    "of two that create, one does": [
        Call("create", "1", 412, 0, 5),
        Call("create", "2", 201, 1, 4),
        Call("get", "2", 200, 6, 7),
    ],
}
BAD = {
    "a stale look": [
        Call("put", "1", 201, 0, 1),
        Call("put", "2", 200, 2, 3),
        Call("get", "1", 200, 4, 5),
    ],
    "a look that goes back": [
        Call("put", "1", 201, 0, 1),
        Call("put", "2", 200, 2, 9),
        Call("get", "2", 200, 3, 4),
        Call("get", "1", 200, 5, 6),
    ],
    "a schedule after its end": [
        Call("put", "1", 201, 0, 1),
        Call("delete", "", 200, 2, 3),
        Call("get", "1", 200, 4, 5),
    ],
    "a lost write": [Call("put", "1", 201, 0, 1), Call("get", NOTHING, 404, 2, 3)],
    "two that both create": [Call("create", "1", 201, 0, 5), Call("create", "2", 201, 1, 4)],
    "deleted twice": [
        Call("put", "1", 201, 0, 1),
        Call("delete", "", 200, 2, 5),
        Call("delete", "", 200, 3, 4),
    ],
    "seen before it was asked for": [
        Call("get", "1", 200, 0, 1),
        Call("put", "1", 201, 2, 3),
    ],
    "an unanswered write counts twice": [
        Call("put", "1", 201, 0, 1),
        Call("delete", "", 0, 2, inf),
        Call("get", NOTHING, 404, 3, 4),
        Call("put", "2", 201, 5, 6),
        Call("get", NOTHING, 404, 7, 8),
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_what_an_atomic_schedule_may_answer_is_accepted(name: str) -> None:
    assert linearizable(GOOD[name])
    assert shortest(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_what_it_may_not_answer_is_found(name: str) -> None:
    assert not linearizable(BAD[name])
    assert shortest(BAD[name])


def played(random: Random, calls: int, callers: int) -> list[Call]:
    """A history of an atomic schedule: each call counts at one instant between its ends."""
    begun = sorted((random.random() * calls, at) for at in range(calls))
    free = [0.0] * callers
    asked: list[tuple[float, float, float, str, str]] = []
    for at, (_, number) in enumerate(begun):
        began = free[at % callers] + random.random()
        counts, ended = sorted(began + random.random() * 4 for _ in range(2))
        free[at % callers] = ended
        name = random.choice(("put", "get", "get", "delete", "create"))
        asked.append((counts, began, ended, name, f"v{number}"))
    state, history = NOTHING, []
    for _, began, ended, name, value in sorted(asked):
        there = state != NOTHING
        status = {"get": 200, "delete": 200 if there else 404, "put": 200 if there else 201}.get(
            name, 412 if there else 201
        )
        call = Call(name, state if name == "get" else value, status, began, ended)
        (state,) = following(state, call)
        lost = name != "get" and random.random() < 0.03
        history.append(Call(name, value, 0, began, inf) if lost else call)
    return history


@pytest.mark.parametrize("seed", range(30))
def test_random_histories_of_an_atomic_schedule_are_accepted(seed: int) -> None:
    assert linearizable(played(Random(seed), 80, 5))


@pytest.mark.parametrize("seed", range(30))
def test_one_look_that_saw_another_value_is_found(seed: int) -> None:
    random = Random(seed)
    history = played(random, 80, 5)
    at = random.choice([n for n, call in enumerate(history) if call.name == "get"])
    look = history[at]
    history[at] = Call("get", "nobody's", 200, look.began, look.ended)
    assert not linearizable(history)


def test_many_unanswered_calls_are_judged_quickly() -> None:
    lost = [Call("put", f"v{n}", 0, n / 10, inf) for n in range(30)]
    lost += [Call("delete", "", 0, n / 10, inf) for n in range(30)]
    seen = [Call("get", "v7", 200, 4, 5), Call("get", NOTHING, 404, 6, 7)]
    assert linearizable([*lost, *seen])
    assert not linearizable([*lost, *seen, Call("get", "v7", 200, 8, 9)])
