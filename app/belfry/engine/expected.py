"""What a request expects of its schedule: the version and generation that it names."""

from __future__ import annotations

from belfry.engine.reports import Reply
from belfry.engine.transitions import Asked
from belfry.schedules.identity import expected_in, generation_of
from belfry.schedules.outcomes import Outcome


def unexpected(expected: int, asked: Asked) -> Reply | None:
    """The reply to a request that counts on another version or generation, or None."""
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
