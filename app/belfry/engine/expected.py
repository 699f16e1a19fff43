"""The expectation of a request: the version and generation of its schedule that it names.

    12:00   A reads      etag 7.2              generation 7, version 2
    12:01   B updates    etag 7.3
    12:02   A updates, expecting 7.2           CONFLICT, wrong_version: it would undo B's update
    12:03   C cancels, and creates anew        etag 9.1
    12:04   B cancels, expecting 7.1           CONFLICT, wrong_generation: it is another schedule

This is what HTTP calls If-Match (RFC 9110, 13.1.1).  Requests of a schedule are judged in the order
of its partition, so of two that expect the same version exactly one is carried out.
"""

from __future__ import annotations

from belfry.engine.reports import Reply
from belfry.engine.transitions import Asked
from belfry.schedules.identity import expected_in, generation_of
from belfry.schedules.outcomes import Outcome


def unexpected(expected: int, asked: Asked) -> Reply | None:
    """The reply to a request that counts on another version or generation, or None.

    `expected` is the field `expected_version`; `schedules.identity.expected_in` says how one number
    holds both.
    """
    generation, version = expected_in(expected)
    there = 0 if asked.generation is None else generation_of(asked.generation)
    if generation and generation != there:
        reason = (
            f"expected_version is {version} of generation {generation}, but the schedule of this id"
            f" is another one now: version {asked.version} of generation {there}. Look at it again."
        )
        return Reply(Outcome.CONFLICT, asked.version, None, "wrong_generation", reason)
    if version == asked.version:
        return None
    reason = f"expected_version is {version}, but the schedule's version is {asked.version}."
    return Reply(Outcome.CONFLICT, asked.version, None, "wrong_version", reason)
