"""The queue of the audit log: it makes nobody wait, and loses nothing silently."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from structlog.testing import capture_logs

from belfry.audit.refusals import FIRST
from belfry.audit.trail import Trail
from belfry.wire.audit import LONGEST_TEXT, AuditEvent, Object, decode_audit, encode_audit

T0 = 1_800_000_000_000


def event(**fields: Any) -> AuditEvent:
    return AuditEvent(**{"at": T0, "action": "schedule.create", "tenant": "demo", **fields})


def test_events_come_out_in_their_order_and_under_the_workers_name() -> None:
    trail = Trail()
    trail.worker = "worker-1"
    for number in range(5):
        trail.note(event(object=str(number)))
    assert trail.arrived.is_set()
    found = trail.take(3, T0) + trail.take(3, T0)
    assert [each.object for each in found] == list("01234")
    assert {each.worker for each in found} == {"worker-1"}


def test_what_there_is_no_room_for_is_counted_and_told() -> None:
    trail, counted = Trail(most_waiting=3), Counter[str]()
    trail.counted = lambda outcome, count: counted.update({outcome: count})
    with capture_logs() as said:
        for number in range(5):
            trail.note(event(object=str(number), caller="orders"))
    assert len(trail.take(100, T0)) == 3
    assert counted == {"lost": 2}
    assert [(each["object"], each["caller"]) for each in said] == [("3", "orders"), ("4", "orders")]
    trail.note(event())
    assert len(trail.take(100, T0)) == 1


def test_an_event_of_many_schedules_takes_as_much_room() -> None:
    trail, counted = Trail(most_waiting=100), Counter[str]()
    trail.counted = lambda outcome, count: counted.update({outcome: count})
    many = tuple(Object(str(each)) for each in range(200))
    # What is alone has room, whatever its size.
    trail.note(event(objects=many))
    trail.note(event())
    assert counted == {"lost": 1}


def test_a_flood_of_refusals_leaves_room_for_changes() -> None:
    trail = Trail(most_waiting=10)
    for _ in range(1_000):
        trail.refused(event(action="read", status=401, source_address="192.0.2.1"))
    trail.note(event(object="after"))
    found = trail.take(100, T0, ending=True)
    assert [each.object for each in found if each.object] == ["after"]
    assert sum(each.count for each in found) == 1_001
    assert len(found) == FIRST + 2


@pytest.mark.parametrize(
    ("level", "actions"),
    [
        ("all", {"schedule.create", "policy.set", "read"}),
        ("policies", {"policy.set", "read"}),
        ("none", set()),
    ],
)
def test_the_setting_says_what_is_noted(level: Any, actions: set[str]) -> None:
    trail = Trail(level)
    trail.note(event())
    trail.note(event(action="policy.set"))
    trail.refused(event(action="read", status=403))
    assert {each.action for each in trail.take(10, T0)} == actions


def test_whatever_a_refused_caller_says_can_be_written() -> None:
    trail = Trail()
    trail.refused(event(tenant="\udcff" * 9, object="x" * 100_000, status=403))
    (found,) = trail.take(1, T0)
    assert len(found.object or "") == LONGEST_TEXT
    assert decode_audit(encode_audit(found)) == found
