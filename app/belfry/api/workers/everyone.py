"""Asking all other workers of the group the same, each for itself alone.

One that does not answer in time, or answers in the form of another release, is named, and holds
nobody up. It is for what each worker knows of itself, such as its partitions or the uses of keys;
what a partition knows is asked of its holder (`reading.py`, `scatter_gather.py`).
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from belfry.api.auth.principal import Principal
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import PeerUnreachable
from belfry.api.workers.view import WorkerView

# Seconds that each of them has for its answer.
OTHERS_S: Final = 1.0

A = TypeVar("A", bound=BaseModel)


async def ask_others(
    view: WorkerView, parts: ApiDependencies, caller: Principal, target: Target, kind: type[A]
) -> dict[str, A | None]:
    """What the other workers answer, by their names; None for those that answer nothing of `kind`.

    All are asked at once, by their addresses in the assignment map. `target` has to ask for the
    worker alone, or each would ask all others again.
    """
    mine = view.identity.worker_id
    entries = [each for each in view.assignment_map().entries if each.http and each.worker != mine]
    answers = await asyncio.gather(*(_ask(each.http, parts, caller, target) for each in entries))
    return {
        entry.worker: None if answer is None else _read(answer, kind)
        for entry, answer in zip(entries, answers, strict=True)
    }


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
