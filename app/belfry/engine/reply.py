"""The reply to a request: its one outcome, and the details of that.

Parts of the engine give replies, and `reports.py` tells of them; a request that is sent on has none
here, for its verdict falls at its home.

    UPSERT of a new schedule     ACCEPTED, version 1, due_ms
    the same again               UNCHANGED, version 1, due_ms
    CREATE of it                 CONFLICT, code exists
    TRIGGER                      TRIGGERED, version 1, fire_id of the extra fire
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from belfry.schedules.outcomes import Outcome

# Characters of a name, and of a reason, that are told.
MOST_SHOWN: Final = 255
MOST_REASON: Final = 2000


@dataclass(slots=True)
class Reply:
    """The outcome of a request, and its details.

    `version` and `due_ms` (epoch ms) are the schedule's after it, `generation` is its life;
    `code` is for programs and `reason` for people.  `fire_id` names the fire of a TRIGGER, or the
    one that an ACK is about.
    """

    outcome: Outcome
    version: int | None = None
    due_ms: int | None = None
    code: str | None = None
    reason: str | None = None
    fire_id: str | None = None
    generation: int | None = None
