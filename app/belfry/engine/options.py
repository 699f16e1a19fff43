"""How an engine works: a worker's settings for it, as one value.

The engine is told once, when it is made: it is made anew for each term of ownership, and settings
that change between two terms change between two steps.

Settings that all workers of a cluster have to agree on are not here: they lie in the state of the
partition and are compared at the start (`settings/`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.effects import STEP_BYTES


class EngineOptions(NamedTuple):
    """About how many bytes a step takes in, and as many it fires; how often usage is told.

    `metering_ms` is the length of a period of metering, 0: usage is not told.  `traces` says that
    the effects tell of requests and fires that are sampled.  `last_fires` says that a schedule that
    recurs keeps its last fires in its row.  With `moves` key groups may move to and from here, if
    workers share a secret.
    """

    step_bytes: int = STEP_BYTES
    metering_ms: int = 0
    traces: bool = False
    last_fires: bool = True
    moves: bool = False


DEFAULTS: Final = EngineOptions()
