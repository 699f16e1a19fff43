"""Between resolver and engine: what was set aside is looked after, and taken in when it can be.

The resolver asks for the schemas (`resolver.py`); the engine keeps the requests, as rows
(`engine/aside.py`).  Neither knows the other: each loop of an owned partition brings them together.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Effects
from belfry.partitions.term import Owned

# How long the loop of a partition waits at most: usually, and while a schema is asked for.
LONGEST_WAIT_S: Final = 1.0
LOOK_AGAIN_S: Final = 0.02


def take_aside(owned: Owned, effects: Effects | None, now_ms: int | None) -> Effects | None:
    """Look after what is set aside, and add what can be taken in to the step's effects.

    Without a clock that is trusted (`now_ms` is None) it goes on to wait.
    """
    engine, resolver = owned.engine, owned.resolver
    if not (resolver.looks_after or engine.aside.any):
        return effects
    resolver.look_after(engine.aside.heads())
    return effects if now_ms is None else engine.take_aside(now_ms)


def longest_s(owned: Owned) -> float:
    """How long the loop may wait for what it has to look at."""
    return LOOK_AGAIN_S if owned.engine.aside.any else LONGEST_WAIT_S
