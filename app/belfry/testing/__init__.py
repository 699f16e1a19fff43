"""For tests of programs that use belfry: a scheduler in memory, and a clock that the test holds.

    from belfry.testing import MemoryScheduler

    def test_an_order_that_is_not_paid_expires() -> None:
        belfry = MemoryScheduler("2026-12-01T09:00:00Z")
        place_order(belfry, "4711")                    # code of yours, written against `Asking`
        assert belfry.advance("29m") == []
        (event,) = belfry.advance("1m")
        assert event.schedule_id == "expire/4711"

The engine is the one that a worker runs, so verdicts, order and instants are the real ones; there
is no Kafka, no thread and no waiting.
"""

from belfry.testing.clock import HeldClock
from belfry.testing.scheduler import MemoryScheduler

__all__ = ["HeldClock", "MemoryScheduler"]
