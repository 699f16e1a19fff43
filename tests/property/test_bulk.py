"""Bulk jobs against brute force: random schedules, filters, budgets, kills and roll-backs.

What a job has to do is computed from a plain list of the schedules; what it did is read from its
outcomes and from what fires afterwards.  A preview has to count the same.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec, read_bulk
from belfry.schedules.rejections import Rejection
from belfry.store import job_lookup
from belfry.store.job_lookup import wanted_by
from belfry.store.layout.jobs import JobRow, decode_job, encode_job, job_key
from belfry.tenants.effective import Level
from tests.unit.engine.driver import HOUR, T0, Driver

IDS: Final = ("a", "a/1", "a/2", "ab", "b", "b/1", "é", "z")
EVENTS: Final = ("commit", "commit", "commit", "abort", "kill")


class Kept(NamedTuple):
    """A schedule as it is asked for."""

    name: str
    due_ms: int
    group: str | None
    event_type: str | None
    paused: bool
    recurs: bool


@st.composite
def kept(draw: st.DrawFn) -> list[Kept]:
    names = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=len(IDS)))
    return [
        Kept(
            name,
            T0 + HOUR + draw(st.integers(0, 5)),
            draw(st.sampled_from([None, "g", "h"])),
            draw(st.sampled_from([None, "t"])),
            draw(st.booleans()),
            draw(st.sampled_from([False, False, True])),
        )
        for name in names
    ]


@st.composite
def specs(draw: st.DrawFn) -> BulkSpec:
    action = draw(st.sampled_from(["CANCEL", "PAUSE", "RESUME", "MOVE", "TRIGGER"]))
    maybe_ms = st.one_of(st.none(), st.integers(T0 + HOUR - 1, T0 + HOUR + 6))
    return BulkSpec(
        action=action,
        prefix=draw(st.sampled_from(["", "", "a", "a/", "b", "é", "none"])),
        group=draw(st.sampled_from([None, None, "g"])),
        event_type=draw(st.sampled_from([None, None, "t"])),
        state=draw(st.sampled_from([None, None, "PENDING", "PAUSED"])),
        due_from=draw(maybe_ms),
        due_until=draw(maybe_ms),
        move_ms=draw(st.sampled_from([-1_000, 1, HOUR])) if action == "MOVE" else None,
        per_second=10_000,
    )


def matches(each: Kept, spec: BulkSpec) -> bool:
    return (
        each.name.startswith(spec.prefix)
        and spec.group in (None, each.group)
        and spec.event_type in (None, each.event_type)
        and (spec.state is None or (spec.state == "PAUSED") is each.paused)
        and (spec.due_from is None or each.due_ms >= spec.due_from)
        and (spec.due_until is None or each.due_ms < spec.due_until)
    )


def outcome(each: Kept, action: str) -> str:
    if action == "MOVE":
        return "REJECTED" if each.recurs else "UPDATED"
    if action == "PAUSE":
        return "UNCHANGED" if each.paused else "PAUSED"
    if action == "RESUME":
        return "RESUMED" if each.paused else "UNCHANGED"
    return {"CANCEL": "CANCELLED", "TRIGGER": "TRIGGERED"}[action]


def fires_at(each: Kept, spec: BulkSpec) -> int | None:
    """When a schedule fires after the job; None for never."""
    paused, due_ms = each.paused, each.due_ms
    if matches(each, spec):
        if spec.action == "CANCEL":
            return None
        paused = {"PAUSE": True, "RESUME": False}.get(spec.action, paused)
        if spec.move_ms is not None and not each.recurs:
            due_ms += spec.move_ms
    return None if paused else due_ms


def asked(driver: Driver, each: Kept) -> None:
    when: dict[str, Any] = {"at": each.due_ms}
    if each.recurs:
        when = {"kind": "EVERY", "interval_ms": 9 * HOUR, "start_at": each.due_ms}
    driver.ask(schedule_id=each.name, group=each.group, event_type=each.event_type, **when)
    if each.paused:
        driver.ask(schedule_id=each.name, action="PAUSE")


def row(driver: Driver) -> JobRow:
    found = driver.engine._store.named(job_key("demo", "job"))
    assert found is not None
    return decode_job(found)


@given(kept(), specs(), st.lists(st.sampled_from(EVENTS), max_size=12), st.integers(1, 4))
def test_each_schedule_that_matches_has_one_outcome(
    all_kept: list[Kept], spec: BulkSpec, events: list[str], names: int
) -> None:
    driver = Driver(level=Level.FAILURES)
    for each in all_kept:
        asked(driver, each)
    driver.ask(schedule_id="a", tenant="other", at=T0 + HOUR)
    driver.step(T0)
    found = job_lookup.preview(driver.rows, wanted_by(b"demo", spec), None, 10_000)
    matching = [each for each in all_kept if matches(each, spec)]
    assert found.matched == len(matching)
    driver.ask(action="BULK", schedule_id="job", bulk=spec.text())
    driver.step(T0)
    told, fired = Counter[tuple[str, str]](), Counter[str]()
    now_ms = T0
    while driver.engine.jobs.under_way:
        event = events.pop() if events else "commit"
        now_ms += 1_000
        effects = driver.engine.advance_jobs(now_ms, Budget(names, names))
        driver.end(now_ms, commit=event == "commit")
        if event == "commit":
            told.update((each.schedule_id, str(each.outcome)) for each in effects.lifecycle)
            fired.update((each[1] or b"").decode() for each in effects.fired)
        elif event == "kill":
            driver.start(driver.rows)
    assert told == Counter((each.name, outcome(each, spec.action)) for each in matching)
    triggered = {each.name for each in matching} if spec.action == "TRIGGER" else set()
    assert sum(fired.values()) == len(triggered)
    assert row(driver).matched == len(matching)
    for at_ms in sorted({T0 + HOUR * k + extra for k in (0, 1, 2) for extra in range(-1_000, 7)}):
        if at_ms > now_ms:
            due = {each.name for each in all_kept if fires_at(each, spec) == at_ms}
            due |= {"a"} if at_ms == T0 + HOUR else set()
            assert set(driver.run(at_ms)) == due
            now_ms = at_ms


@given(kept(), specs(), st.integers(1, 5))
def test_a_preview_in_pages_counts_what_one_look_counts(
    all_kept: list[Kept], spec: BulkSpec, examine: int
) -> None:
    driver = Driver(level=Level.FAILURES)
    for each in all_kept:
        asked(driver, each)
    driver.step(T0)
    before = dict(driver.rows.scan(b"", b"\xff"))
    wanted, after, matched, pages = wanted_by(b"demo", spec), None, 0, 0
    while True:
        page = job_lookup.preview(driver.rows, wanted, after, examine)
        assert page.examined <= examine
        matched, after, pages = matched + page.matched, page.after, pages + 1
        if after is None:
            break
    assert matched == sum(matches(each, spec) for each in all_kept)
    assert pages <= len(all_kept) + 1
    assert dict(driver.rows.scan(b"", b"\xff")) == before


@given(specs())
def test_what_a_job_is_asked_for_reads_back(spec: BulkSpec) -> None:
    assert read_bulk(spec.text()) == spec
    kept_row = JobRow(spec.text(), 1, 2, (3, 4), reason="é", refusals={"not_movable": 2})
    assert decode_job(encode_job(kept_row)) == kept_row


@given(st.one_of(st.text(), st.binary().map(repr)))
@settings(max_examples=300)
def test_no_text_is_more_than_refused(text: str) -> None:
    assert isinstance(read_bulk(text), Rejection)


JSON: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)
NAMES: Final = st.sampled_from(
    ["action", "prefix", "group", "due_from", "state", "move_ms", "per_second", "odd"]
)


@given(st.dictionaries(NAMES, st.one_of(JSON, st.sampled_from(["MOVE", "CANCEL", "PAUSED"]))))
def test_no_object_raises(said: dict[str, Any]) -> None:
    found = read_bulk(json.dumps(said))
    assert isinstance(found, Rejection | BulkSpec)
