"""What bulk jobs fire is explained by their rows, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belfry.schedules.identity import backfill_fire_id
from belfry.verification.findings import Breach
from belfry.verification.memory import FiredEntry
from belfry.verification.rows import ALL_INSTANTS, JOB_KEY, NotReadable, id_of_past, job
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.engine.test_encrypted_payloads import NEW, OLD, let
from tests.unit.verification.planted import TOPIC, backfilled, lose_a_backfilled_fire
from tests.unit.verification.trace import (
    MINUTE,
    MemoryInProcess,
    Recording,
    Trace,
    ask_for_job,
    varied,
    verified,
    work,
)

BEGIN = T0 - HOUR + MINUTE // 2


def backfill(*tenants: str) -> Trace:
    """A backfill of each tenant, all in the same steps."""
    made = Recording()
    for tenant in tenants:
        for name in ("a", "b"):
            made.ask(
                tenant=tenant, schedule_id=name, kind="EVERY", interval_ms=MINUTE, start_at=BEGIN
            )
    made.step(T0)
    for tenant in tenants:
        ask_for_job(
            made, "past", "BACKFILL", tenant, range_from=T0 - HOUR, range_until=T0 - HOUR // 2
        )
    made.step(T0)
    for number in range(1, 6):
        work(made, T0 + 1_000 * number, 25)
    return made.trace


def test_ids_of_a_backfill_are_those_of_the_engine() -> None:
    given = b"demo/a", 2**64 - 1, (7, 2**40), -5
    assert id_of_past(*given).hex().encode() == backfill_fire_id(*given)


def test_jobs_of_several_tenants_have_their_turns_in_an_order_that_nothing_tells() -> None:
    trace = backfill("demo", "more")
    made = verified(trace, floors={FIRED + "demo": -1, FIRED + "more": -1})
    assert made.findings == []
    assert made.counts.fires == len(trace.fired) == 120
    assert made.counts.order_unknown <= 2


def test_a_job_of_another_tenant_explains_nothing() -> None:
    trace = backfill("demo")
    trace.changelog = [
        each._replace(key=each.key.replace(b"demo/past", b"more/past"))
        if each.key.startswith(JOB_KEY)
        else each
        for each in trace.changelog
    ]
    found = [
        each.breach for each in verified(trace, floors={TOPIC: -1, FIRED + "more": -1}).findings
    ]
    assert found.count(Breach.UNASKED) == len(trace.fired) == 60
    assert Breach.COUNT in found


def test_what_a_job_lost_is_missed_in_the_step_that_fired_it() -> None:
    """What later steps fired does not stand for it."""
    trace = varied()
    lost = next(each for each in trace.fired if each.identity == backfilled(trace)[3])
    lose_a_backfilled_fire(trace)
    [found] = verified(trace).findings
    [at_ms] = [each.timestamp_ms for each in trace.changelog if each.offset == found.spot.offset]
    assert at_ms == lost.timestamp_ms


def test_fires_of_a_job_that_retention_has_removed_are_not_missed() -> None:
    trace = varied()
    past = set(backfilled(trace))
    gone_ms = max(each.timestamp_ms for each in trace.fired if each.identity in past)
    trace.fired = [
        each
        for each in trace.fired
        if each.timestamp_ms > gone_ms or (each.occurrence == -1 and each.identity not in past)
    ]
    made = verified(trace, floors={TOPIC: gone_ms})
    assert made.findings == []
    assert made.counts.output_gone > len(past)


def test_fires_of_a_job_whose_rows_compaction_has_removed_are_not_judged() -> None:
    trace = backfill("demo")
    rows = [each for each in trace.changelog if each.key.startswith(JOB_KEY)]
    assert len(rows) > 3
    trace.changelog = [each for each in trace.changelog if each not in rows[:-1]]
    made = verified(trace)
    assert made.findings == []
    assert made.counts.compacted > 0
    assert made.counts.before_begin > 0


def test_extra_fires_are_looked_at_no_further_than_needed() -> None:
    """A long backfill is not read anew for each of its transactions."""
    trace = backfill("demo")
    looked = 0

    class Counting(MemoryInProcess):
        def extras(self, since_ms: int, until_ms: int) -> Iterator[FiredEntry]:
            nonlocal looked
            for each in super().extras(since_ms, until_ms):
                looked += 1
                yield each

    assert verified(trace, memory=Counting()).findings == []
    assert looked <= len(trace.fired)


GOOD = b'\1\x0e{"offset":1,"origin":[0,1],"cursor":"demo/a","state":"RUNNING"}'


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        (b"\x0e", b"\x0d"),
        (b"{", b""),
        (b'"offset"', b'"other"'),
        (b"1,", b'"1",'),
        (b"1,", b"1e999,"),
        (b"1,", b"9223372036854775808,"),
        (b"[0,1]", b"[0]"),
        (b"[0,1]", b"[-1,1]"),
        (b'"demo/a"', b"7"),
        (b'"cursor"', b'"amid_fired":1,"cursor"'),
    ],
)
def test_a_job_that_no_release_writes_is_not_readable(said: bytes, instead: bytes) -> None:
    assert job(b"\0jdemo/x", GOOD) == (b"demo/", 1, (0, 1), (b"demo/a", ALL_INSTANTS), True)
    with pytest.raises(NotReadable):
        job(b"\0jdemo/x", GOOD.replace(said, instead, 1))


def test_payloads_under_a_new_key_and_pauses_for_lack_of_one_are_no_findings() -> None:
    """Rows are written anew in the same version: nothing of it looks like a fire."""
    made = Recording()
    let(made, OLD)
    for number in range(6):
        due_ms = T0 + number * MINUTE
        made.ask(schedule_id=f"s{number}", payload=b"secret", at=due_ms)
    made.ask(schedule_id="rule", payload=b"s", kind="EVERY", interval_ms=MINUTE, max_fires=9)
    made.step(T0 + 1)
    let(made, NEW, OLD)
    ask_for_job(made, "anew", "REKEY", "demo", prefix="s")
    made.step(T0 + 2)
    work(made, T0 + 3, 25)
    let(made, NEW)
    for number in range(1, 9):
        made.step(T0 + number * MINUTE)
    trace = made.trace
    # The rule still lies under the old key, and is paused; the others fire.
    assert len(trace.fired) == 6
    judged = verified(trace)
    assert judged.findings == []
    assert judged.counts.fires == 6
