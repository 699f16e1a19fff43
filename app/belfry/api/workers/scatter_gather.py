"""A tenant's history from all workers: each answers for the partitions that it follows.

A partition counts once, by the answer of one worker that followed it from the first look to the
last. Where one is on its way, the others' answers are kept and it is asked for again, for a while;
an answer without it would be wrong and not look so.

Partitions 0 to 3 of the history, asked of W1:

    round 1    W1 looks into 0 and 1                     found, both followed before and after
               W2 is asked for 2 and 3                   "3 is not followed here": nothing counts
    50 ms      3 moves to W1
    round 2    W1 looks into 3                           found
               W2 is asked for 2 alone                   found
    answer     the events of 0, 1, 2 and 3, each of one worker

Without an answer for each partition within two seconds the caller gets 503, and which are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

import orjson
from fastapi import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.workers.internal_token import FORWARDED, Target
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.peers import NOT_HELD, PeerUnreachable, number_in
from belfry.history.follower import Follower
from belfry.history.history_store import HistoryStore

# Header by which a worker says of which partitions it asks.
FOLLOWED: Final = "belfry-followed"
# Seconds for all partitions, and between two rounds.
TIMEOUT_S: Final = 2.0
PAUSE_S: Final = 0.05
# What a worker finds in some partitions; it may let other requests run meanwhile.
# JSON of a worker about some partitions; the route that asked merges these.
Answer = dict[str, Any]
Look = Callable[[Follower, frozenset[int]], Awaitable[Answer]]


class Gatherer:
    """Asks each worker for the partitions that it follows; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts

    async def gather(
        self, request: Request, caller: Principal, look: Look
    ) -> list[dict[str, Any]] | Response:
        """The finds of `look` here and at the others; a response for a worker that asks."""
        source = opened(self._parts.ready.history)
        if FORWARDED in request.headers:
            return await _for_worker(request, source, look)
        deadline = monotonic() + TIMEOUT_S
        missing = frozenset(range(source.partitions))
        found: list[dict[str, Any]] = []
        while True:
            here = missing & source.followed
            answer = await _looked(source, here, look)
            if answer is not None:
                found.append(answer)
                missing -= here
            told, why = await self._elsewhere(request, caller, source, missing)
            for partitions, answer in told:
                found.append(answer)
                missing -= partitions
            if not missing:
                return found
            if monotonic() > deadline:
                detail = f"Partitions {sorted(missing)} are on their way ({why}). Try again."
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "moving", RETRY_SOON)
            await asyncio.sleep(PAUSE_S)

    async def _elsewhere(
        self, request: Request, caller: Principal, source: Follower, missing: frozenset[int]
    ) -> tuple[list[tuple[frozenset[int], dict[str, Any]]], str]:
        """Answers of the other workers with what each answers for, and why some are missing.

        A worker is asked once for all of its partitions. Its answer counts whole or not at all.
        """
        directory = self._parts.ready.directory
        by_url: dict[str, set[int]] = {}
        for partition in missing:
            url = directory.holder(source.home_of(partition))
            if url is not None and url != directory.mine:
                by_url.setdefault(url, set()).add(partition)
        if not by_url:
            return [], "the group has not said who holds them"
        target = await Target.of(request)
        asked = [self._ask(url, target, caller, frozenset(some)) for url, some in by_url.items()]
        answers = await asyncio.gather(*asked)
        why = "; ".join(answer for _, answer in answers if isinstance(answer, str))
        return [(some, told) for some, told in answers if not isinstance(told, str)], why

    async def _ask(
        self, url: str, target: Target, caller: Principal, partitions: frozenset[int]
    ) -> tuple[frozenset[int], dict[str, Any] | str]:
        """The answer of one worker for some partitions, or why there is none."""
        headers = {FOLLOWED: ",".join(map(str, sorted(partitions)))}
        try:
            answer = await self._parts.peers.ask(url, target, caller, headers)
        except PeerUnreachable as error:
            return partitions, str(error)
        if answer.status_code != HTTPStatus.OK:
            return partitions, f"{url} answers {answer.status_code}"
        return partitions, orjson.loads(answer.body)


async def _looked(
    source: Follower, partitions: frozenset[int], look: Look
) -> dict[str, Any] | None:
    """The finds in these partitions; None if one of them is not followed to the last."""
    if not partitions or not partitions <= source.followed:
        return None
    found = await look(source, partitions)
    return found if partitions <= source.followed else None


async def _for_worker(request: Request, source: Follower, look: Look) -> Response:
    """Answer for the partitions that another worker asks for, if all of them are here."""
    asked = request.headers.get(FOLLOWED, "")
    wanted = frozenset(number_in(FOLLOWED, each) for each in asked.split(",") if each)
    found = await _looked(source, wanted, look)
    if found is not None:
        return sent(found)
    detail = f"Partitions {sorted(wanted - source.followed)} are not followed here."
    refusal = Problem(HTTPStatus.MISDIRECTED_REQUEST, detail, "not_held", {NOT_HELD: "1"})
    return problem_response(refusal, request.url.path)


def opened(source: Follower) -> Follower:
    """The same, once it can be asked; raises `Problem` before."""
    if source.store is None or not source.partitions:
        detail = "The history is not open yet. Try again."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
    return source


def store_of(source: Follower) -> HistoryStore:
    """The open history; raises `Problem` while it is not open."""
    store = opened(source).store
    assert store is not None
    return store


def sent(told: dict[str, Any]) -> Response:
    """An answer as JSON; it is what one worker tells another."""
    return Response(orjson.dumps(told), HTTPStatus.OK, None, "application/json")
