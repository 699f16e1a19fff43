"""Asking all other workers of the group the same, each for itself alone.

One that does not answer in time, or answers in the form of another release, is named, and holds
nobody up. It is for facts of each worker, such as its partitions or the uses of keys; a question
about a partition goes to its holder (`reading.py`, `scatter_gather.py`).

A page does not wait (`at_once`), except for a worker that was never asked. A worker that is late is
shown as it answered last, with the instant of that, and its answer to this question is there for
the next look:

    12:00:00.00   W2 and W3 are asked
    12:00:00.25   W2 has answered, W3 has not    answer: W2, W3 as of 11:59:55; silent: ["W3"]
    12:00:00.90   W3 answers                     remembered
    12:00:05.00   they are asked again
    12:00:05.25   W3 is frozen                   answer: W2, W3 as of 12:00:00.90; silent: ["W3"]
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from belfry.api.auth.principal import Principal
from belfry.api.json.worker_answers import RememberedAnswer, instant
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import PeerUnreachable
from belfry.api.workers.view import WorkerView

# Seconds that each of them has for its answer.
OTHERS_S: Final = 1.0

A = TypeVar("A", bound=BaseModel)


class Others(NamedTuple, Generic[A]):
    """The answers of the other workers.

    `told` has their answers by name, also earlier ones of late workers, which `remembered` names.
    `silent` are all that did not answer in time, or not in the asked form.
    """

    told: dict[str, A]
    silent: list[str]
    remembered: list[RememberedAnswer]


async def ask_others(
    view: WorkerView,
    parts: ApiDependencies,
    caller: Principal,
    target: Target,
    kind: type[A],
    *,
    at_once: bool = False,
) -> Others[A]:
    """The answers of the other workers, each a value of `kind`.

    All are asked at once, by their addresses in the assignment map. `target` has to ask for the
    worker alone, or each would ask all others again. With `at_once` it has to be a question that
    changes nothing, and an earlier answer may serve.
    """
    mine = view.identity.worker_id
    entries = [each for each in view.assignment_map().entries if each.http and each.worker != mine]

    async def one(url: str) -> tuple[bytes | None, int | None]:
        question = ((url, target), caller)
        if at_once:
            return await parts.last_answers.soon(
                question, lambda: _ask(url, parts, caller, target), parts.now_ms
            )
        return await _ask(url, parts, caller, target), None

    answers = await asyncio.gather(*(one(each.http) for each in entries))
    found: Others[A] = Others({}, [], [])
    for entry, (body, at_ms) in zip(entries, answers, strict=True):
        answer = None if body is None else _read(body, kind)
        if answer is not None:
            found.told[entry.worker] = answer
        if answer is None or at_ms is not None:
            found.silent.append(entry.worker)
        if answer is not None and at_ms is not None:
            found.remembered.append(RememberedAnswer(worker_id=entry.worker, at=instant(at_ms)))
    return found


def no_others() -> Others[A]:
    """Asks no worker."""
    return Others({}, [], [])


def _read(answer: bytes, kind: type[A]) -> A | None:
    """An answer as a value; None where another release gives it in another form."""
    try:
        return kind.model_validate_json(answer)
    except ValidationError:
        return None


async def _ask(url: str, parts: ApiDependencies, caller: Principal, target: Target) -> bytes | None:
    try:
        async with asyncio.timeout(OTHERS_S):
            answer = await parts.peers.ask(url, target, caller, {})
    except (PeerUnreachable, TimeoutError):
        return None
    return bytes(answer.body) if answer.status_code == HTTPStatus.OK else None
