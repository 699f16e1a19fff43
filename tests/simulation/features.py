"""The checks of later features, one after the other."""

from __future__ import annotations

from tests.simulation.acks import AcksSeen
from tests.simulation.bulk import JobsSeen
from tests.simulation.days import check_days
from tests.simulation.dependents import check_dependents
from tests.simulation.overlapping import check_overlaps
from tests.simulation.past import check_past
from tests.simulation.paused import check_paused
from tests.simulation.taking import Seen


def check_features(seen: Seen, jobs: JobsSeen) -> list[str]:
    """What is wrong with acknowledgements, with what follows them, calendars and backfills."""
    acks = AcksSeen(seen)
    problems = (
        acks.problems + check_overlaps(seen) + check_dependents(seen, acks) + check_days(seen)
    )
    return problems + check_past(seen, jobs) + check_paused(seen, jobs)
