"""Events of two playbacks, matched by ids, then by schedule and number; and what is shown."""

from __future__ import annotations

from belfry.playback.contrast import Contrast, MovedEvent, TenantContrast
from belfry.playback.virtual import VirtualEvent


def event(identity: str, fired_ms: int, occurrence: int = 0, schedule: str = "a") -> VirtualEvent:
    return VirtualEvent(
        identity=identity.encode(),
        tenant="shop",
        schedule_id=schedule,
        occurrence=occurrence,
        scheduled_at=f"of {identity}",
        fired_ms=fired_ms,
    )


def ended(was: list[VirtualEvent], would: list[VirtualEvent]) -> TenantContrast:
    """What becomes of it, whichever side is heard first."""
    found = []
    for first in (True, False):
        contrast = Contrast()
        sides = [(contrast.was, each) for each in was], [(contrast.would, each) for each in would]
        for side in sides if first else reversed(sides):
            for told, each in side:
                told(each)
        contrast.end({}, {})
        found.append(contrast.tenants["shop"])
    assert found[0] == found[1]
    return found[0]


def test_the_example_of_the_page() -> None:
    was = [event("a", 1_000), event("b", 1_000), event("c", 1_000, schedule="c")]
    found = ended(was, [event("a", 1_000), event("b", 2_000)])
    assert found == TenantContrast(
        fires=3, would_fire=2, later=1, missing=1, most_later_ms=1_000,
        examples=[MovedEvent("a", "of b", 1_000, 2_000), MovedEvent("c", "of c", 1_000, None)],
    )  # fmt: skip
    assert found.differs


def test_what_fires_alike_does_not_differ() -> None:
    found = ended([event("a", 5)], [event("a", 5)])
    assert found == TenantContrast(fires=1, would_fire=1)
    assert not found.differs
    # An extra event has no number, and its id alone says that it is the same.
    extra = event("x", 5, -1)
    assert ended([extra], [extra]) == TenantContrast(fires=1, would_fire=1)


def test_an_earlier_event_is_no_delay_and_one_besides_is_new() -> None:
    found = ended([event("a", 5)], [event("a", 4), event("b", 7, schedule="b")])
    assert (found.earlier, found.later, found.most_later_ms, found.new) == (1, 0, 0, 1)
    assert found.examples == [MovedEvent("a", "of a", 5, 4), MovedEvent("b", "of b", None, 7)]
    assert found.differs


def test_the_longest_delay_is_told() -> None:
    was = [event(name, 0) for name in "abc"]
    assert ended(was, [event("a", 9), event("b", 30), event("c", 2)]).most_later_ms == 30


def test_three_examples_are_kept_of_each_kind() -> None:
    was = [event(f"{n}", 0, schedule=f"s{n}") for n in range(9)]
    would = [event(f"{n}", 1 if n < 4 else -1, schedule=f"s{n}") for n in range(8)]
    found = ended(was, would)
    assert (found.later, found.earlier, found.missing) == (4, 4, 1)
    assert len(found.examples) == 3 + 3 + 1


def test_what_has_another_id_is_matched_by_its_schedule_and_number() -> None:
    was = [event("a", 10, 4), event("b", 20, 4), event("c", 30, 5)]
    found = ended(was, [event("x", 11, 4), event("y", 22, 4), event("z", 30, 6)])
    assert (found.later, found.most_later_ms, found.missing, found.new) == (2, 2, 1, 1)


def test_extra_events_have_no_number_to_be_matched_by() -> None:
    found = ended([event("a", 10, -1)], [event("b", 11, -1)])
    assert (found.missing, found.new, found.later) == (1, 1, 0)
    assert ended([event("a", 10, 0)], [event("b", 11, 0)]).later == 1


def test_refusals_are_of_each_tenant_and_add_up() -> None:
    contrast = Contrast()
    contrast.end({"shop": 2, "pay": 1}, {"shop": 2, "new": 4})
    found = contrast.tenants
    assert (found["shop"].refused, found["shop"].would_refuse, found["shop"].differs) == (
        2,
        2,
        False,
    )
    assert (found["pay"].refused, found["pay"].would_refuse, found["pay"].differs) == (1, 0, True)
    assert (found["new"].would_refuse, found["new"].differs) == (4, True)
