"""Asking all other workers of the group the same, each for itself alone.

One that does not answer in time is named, and holds nobody up. It is for what each worker knows of
itself, such as its partitions or the uses of keys; what a partition knows is asked of its holder
(`reading.py`, `scatter_gather.py`).
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from belfry.api.auth.principal import Principal
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import PeerUnreachable, Target
from belfry.api.workers.view import WorkerView

# Seconds that each of them has for its answer.
OTHERS_S: Final = 1.0


async def ask_others(
    view: WorkerView, parts: ApiDependencies, caller: Principal, target: Target
) -> dict[str, bytes | None]:
    """What the other workers answer, by their names; None for those that do not.

    All are asked at once, by their addresses in the assignment map. `target` has to ask for the
    worker alone, or each would ask all others again.
    """
    mine = view.identity.worker_id
    entries = [each for each in view.assignment_map().entries if each.http and each.worker != mine]
    answers = await asyncio.gather(*(_ask(each.http, parts, caller, target) for each in entries))
    return {entry.worker: answer for entry, answer in zip(entries, answers, strict=True)}


async def _ask(url: str, parts: ApiDependencies, caller: Principal, target: Target) -> bytes | None:
    try:
        async with asyncio.timeout(OTHERS_S):
            answer = await parts.peers.ask(url, target, caller, {})
    except (PeerUnreachable, TimeoutError):
        return None
    return bytes(answer.body) if answer.status_code == HTTPStatus.OK else None
