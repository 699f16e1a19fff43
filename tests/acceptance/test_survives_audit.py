"""The auditor notices: for each invariant a list that was doctored, and the finding it must give.

An audit that finds nothing proves as much as its ability to find something.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import sent
from tests.acceptance.harness.auditor import audit, drained
from tests.acceptance.harness.evidence import INVARIANTS, Evidence, rfc3339
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import CANCEL, POISON, TRIGGER, UPSERT, Sent

PREFIX = "doc."
T0 = 1_800_000_000_000


def upsert(request_id: str, schedule_id: str, due_ms: int, offset: int, group: str = "") -> Sent:
    return Sent(
        request_id,
        UPSERT,
        "demo",
        schedule_id,
        due_ms,
        group,
        (group or schedule_id).encode(),
        request_id.encode() + b" \0\xff",
        [("a", None)],
        partition=2,
        offset=offset,
        appended_ms=T0 + offset,
    )


def other(request_id: str, action: str, schedule_id: str, offset: int) -> Sent:
    return Sent(
        request_id, action, "demo", schedule_id, partition=2, offset=offset, appended_ms=T0 + offset
    )


def fired(one: Sent, offset: int, fire_id: str = "", occurrence: bytes = b"0") -> Record:
    own = [
        ("belfry-fire-id", (fire_id or f"f{offset}").encode()),
        ("belfry-schedule-id", one.schedule_id.encode()),
        ("belfry-scheduled-at", rfc3339(one.due_ms)),
        ("belfry-occurrence", occurrence),
    ]
    topic = f"{PREFIX}fired.{one.tenant}"
    return Record(topic, 0, offset, one.due_ms + 12, one.key, one.payload, [*one.headers, *own])


def verdict(one: Sent, outcome: str, fire_id: str | None = None) -> dict[str, Any]:
    return {
        "request_id": one.request_id,
        "outcome": outcome,
        "fire_id": fire_id,
        "appended_ms": one.appended_ms + 5,
        "committed_ms": one.appended_ms + 9,
    }


def refused(one: Sent) -> Record:
    where = {"topic": f"{PREFIX}schedules", "partition": one.partition, "offset": one.offset}
    headers = [(f"belfry-error-{name}", str(value).encode()) for name, value in where.items()]
    return Record(f"{PREFIX}rejected", 0, 0, T0, b"", b"", headers)  # type: ignore[arg-type]


def good() -> Evidence:
    """A small world in which all is well: every kind of request, and what became of it."""
    plain = upsert("r0", "plain", T0 + 5_000, 0)
    replaced, replacing = upsert("r1", "up", T0 + 9_000, 1), upsert("r2", "up", T0 + 9_500, 2)
    cancelled, cancel = upsert("r3", "gone", T0 + 9_000, 3), other("r4", CANCEL, "gone", 4)
    pulled, trigger = upsert("r5", "pulled", T0 + 8_000, 5), other("r6", TRIGGER, "pulled", 6)
    first = upsert("r7", "g1", T0 + 6_000, 7, "g")
    second = upsert("r8", "g2", T0 + 7_000, 8, "g")
    tie = upsert("r9", "g3", T0 + 7_000, 9, "g")
    poison = other("r10", POISON, "", 10)
    late_cancel = other("r11", CANCEL, "plain", 6_000)
    again = upsert("r12", "plain", T0 + 9_900, 6_001)
    return Evidence(
        PREFIX,
        [
            plain, replaced, replacing, cancelled, cancel, pulled, trigger, first, second, tie,
            poison, late_cancel, again,
        ],
        [
            fired(pulled, 0, "extra", b"-1"),
            fired(plain, 1),
            fired(first, 2),
            fired(second, 3),
            fired(tie, 4),
            fired(pulled, 5),
            fired(replacing, 6),
            fired(again, 7),
        ],
        [refused(poison)],
        [
            verdict(plain, "ACCEPTED"),
            verdict(replaced, "ACCEPTED"),
            verdict(replacing, "UPDATED"),
            verdict(cancelled, "ACCEPTED"),
            verdict(cancel, "CANCELLED"),
            verdict(pulled, "ACCEPTED"),
            verdict(trigger, "TRIGGERED", "extra"),
            verdict(first, "ACCEPTED"),
            verdict(second, "ACCEPTED"),
            verdict(tie, "ACCEPTED"),
            verdict(late_cancel, "TOO_LATE"),
            verdict(again, "ACCEPTED"),
            {"request_id": None, "outcome": "REJECTED", "fire_id": None},
        ],
    )  # fmt: skip


def of(world: Evidence, request_id: str, occurrence: bytes = b"0") -> Record:
    """The fired record of a request."""
    name = request_id.encode() + b" "
    return next(
        record
        for record in world.fired
        if (record.value or b"").startswith(name)
        and record.header("belfry-occurrence") == occurrence
    )


def put_header(record: Record, name: str, value: bytes | None) -> None:
    record.headers = [(n, value if n == name else v) for n, v in record.headers]


def outcome(world: Evidence, request_id: str, to: str) -> None:
    told(world, request_id)["outcome"] = to


def told(world: Evidence, request_id: str) -> dict[str, Any]:
    """The verdict of a request."""
    return next(event for event in world.lifecycle if event["request_id"] == request_id)


def swap(world: Evidence, one: str, other_one: str) -> None:
    a, b = of(world, one), of(world, other_one)
    a.offset, b.offset = b.offset, a.offset
    world.fired.sort(key=lambda record: record.offset)


def lose(world: Evidence) -> None:
    world.fired.remove(of(world, "r0"))


def double(world: Evidence) -> None:
    again = copy.deepcopy(of(world, "r0"))
    put_header(again, "belfry-fire-id", b"another")
    world.fired.append(again)


def be_early(world: Evidence) -> None:
    of(world, "r0").timestamp_ms = T0 + 4_999


def fire_the_cancelled(world: Evidence) -> None:
    world.fired.append(fired(world.sent[3], 99))


def fire_the_replaced(world: Evidence) -> None:
    world.fired.append(fired(world.sent[1], 99))


def invent(world: Evidence) -> None:
    stranger = upsert("r99", "nobody", T0 + 1, 99)
    world.fired.append(fired(stranger, 99))


def fire_the_refused(world: Evidence) -> None:
    one = upsert("r13", "never", T0 + 9_000, 11)
    world.sent.append(one)
    world.rejected.append(refused(one))
    world.lifecycle.append(verdict(one, "REJECTED"))
    world.fired.append(fired(one, 99))


def change_payload(world: Evidence) -> None:
    of(world, "r0").value = b"r0 \0\xfe"


def change_key(world: Evidence) -> None:
    of(world, "r0").key = None


def change_user_header(world: Evidence) -> None:
    put_header(of(world, "r0"), "a", b"")


def change_instant(world: Evidence) -> None:
    put_header(of(world, "r0"), "belfry-scheduled-at", rfc3339(T0))


def stray_topic(world: Evidence) -> None:
    of(world, "r0").topic = f"{PREFIX}fired.somebody-else"


def same_fire_id(world: Evidence) -> None:
    put_header(of(world, "r0"), "belfry-fire-id", of(world, "r7").header("belfry-fire-id"))


def no_fire_id(world: Evidence) -> None:
    put_header(of(world, "r0"), "belfry-fire-id", None)


def swap_group(world: Evidence) -> None:
    swap(world, "r7", "r8")


def swap_tie(world: Evidence) -> None:
    swap(world, "r8", "r9")


def fire_after_its_turn(world: Evidence) -> None:
    """It came late, but its verdict stood a hundred milliseconds before another's turn."""
    late = upsert("r20", "g4", T0 + 6_500, 6_900, "g")
    world.sent.append(late)
    world.lifecycle.append(verdict(late, "ACCEPTED"))
    world.fired.append(fired(late, 99))


def split_group(world: Evidence) -> None:
    of(world, "r8").partition = 1


def lose_extra(world: Evidence) -> None:
    world.fired.remove(of(world, "r5", b"-1"))


def double_extra(world: Evidence) -> None:
    world.fired.append(copy.deepcopy(of(world, "r5", b"-1")))


def invent_extra(world: Evidence) -> None:
    world.fired.append(fired(world.sent[0], 99, "unasked", b"-1"))


def not_answered(world: Evidence) -> None:
    world.lifecycle = [event for event in world.lifecycle if event["request_id"] != "r0"]


def answered_twice(world: Evidence) -> None:
    world.lifecycle.append(dict(world.lifecycle[0]))


def cancel_ignored(world: Evidence) -> None:
    outcome(world, "r4", "TOO_LATE")
    world.fired.append(fired(world.sent[3], 99))


def cancel_lay_there(world: Evidence) -> None:
    """Nobody fired anything while the cancel lay in the log; then the cancelled fired first."""
    outcome(world, "r4", "TOO_LATE")
    told(world, "r4")["appended_ms"] = T0 + 20_000
    world.fired = [record for record in world.fired if record.timestamp_ms > T0 + 20_000]
    late = fired(world.sent[3], 99)
    late.timestamp_ms = T0 + 20_001
    world.fired.append(late)


def update_ignored(world: Evidence) -> None:
    outcome(world, "r2", "ACCEPTED")
    world.fired.append(fired(world.sent[1], 99))


def contradicted(world: Evidence) -> None:
    outcome(world, "r0", "UPDATED")


def poison_dropped(world: Evidence) -> None:
    world.rejected.clear()


def poison_kept_twice(world: Evidence) -> None:
    world.rejected *= 2


def valid_refused(world: Evidence) -> None:
    world.rejected.append(refused(world.sent[0]))


DOCTORED: list[tuple[Callable[[Evidence], None], str]] = [
    (lose, "lost"),
    (double, "doubled"),
    (be_early, "early"),
    (fire_the_cancelled, "ended"),
    (fire_the_replaced, "ended"),
    (invent, "invented"),
    (fire_the_refused, "invented"),
    (change_payload, "content"),
    (change_key, "content"),
    (change_user_header, "content"),
    (change_instant, "content"),
    (stray_topic, "topic"),
    (same_fire_id, "fire_id"),
    (no_fire_id, "fire_id"),
    (swap_group, "order"),
    (swap_tie, "order"),
    (fire_after_its_turn, "order"),
    (split_group, "order"),
    (lose_extra, "trigger"),
    (double_extra, "trigger"),
    (invent_extra, "trigger"),
    (not_answered, "unanswered"),
    (answered_twice, "answered_twice"),
    (cancel_ignored, "in_time"),
    (cancel_lay_there, "in_time"),
    (update_ignored, "in_time"),
    (contradicted, "impossible"),
    (poison_dropped, "refused"),
    (poison_kept_twice, "refused"),
    (valid_refused, "refused"),
]


def test_a_good_world_has_no_findings() -> None:
    report = audit(good())
    assert report.findings == []
    assert (report.requests, report.expected, report.extras, report.fired) == (13, 7, 1, 8)
    assert report.lateness_ms == [12] * 7
    assert drained(report)


@pytest.mark.parametrize(
    ("doctor", "invariant"), DOCTORED, ids=lambda each: getattr(each, "__name__", each)
)
def test_the_auditor_notices(doctor: Callable[[Evidence], None], invariant: str) -> None:
    world = good()
    doctor(world)
    report = audit(world)
    assert report.of(invariant), report.summary()


def test_each_invariant_has_a_doctored_list() -> None:
    assert {invariant for _, invariant in DOCTORED} == set(INVARIANTS)


def test_what_came_late_need_not_be_in_order() -> None:
    world = good()
    late = upsert("r20", "g4", T0 + 6_500, 7_005, "g")
    world.sent.append(late)
    world.lifecycle.append(verdict(late, "ACCEPTED"))
    world.fired.append(fired(late, 99))
    assert audit(world).findings == []


def test_what_a_busy_worker_took_in_too_late_is_counted() -> None:
    world = good()
    outcome(world, "r4", "TOO_LATE")
    told(world, "r4")["appended_ms"] = T0 + 9_100
    world.fired.append(fired(world.sent[3], 99))
    report = audit(world)
    assert report.findings == []
    assert report.overrun == 1


def test_a_list_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    sent.write(good().sent, tmp_path / "sent.jsonl")
    assert sent.load(tmp_path / "sent.jsonl") == good().sent


def test_the_auditor_shares_no_code_with_belfry() -> None:
    folder = Path(__file__).parent / "harness"
    for name in ("auditor.py", "evidence.py", "order.py", "reading.py", "sent.py"):
        text = (folder / name).read_text("utf-8")
        assert "import belfry" not in text
        assert "from belfry" not in text
