"""Ends of transactions that come late, beside rows that compaction has removed.

offset   0 …  n        n + 1     n + 2      n + 3     n + 4, n + 5
         rows manifest row of b  row of c   manifest  the ends of both
                       └ removed: a hole as large as the end that was due there
"""

from __future__ import annotations

import pytest

from belfry.verification import sequence
from belfry.verification.findings import Breach
from belfry.verification.rows import MANIFEST_KEY
from tests.unit.engine.driver import HOUR, T0
from tests.unit.verification.planted import at_manifest, rewritten
from tests.unit.verification.trace import Recording, Trace, verified

ROW = b"demo/b"


def laid_out(trace: Trace, ends: list[int]) -> Trace:
    """The same records, with so many ends of transactions behind each manifest."""
    made, left = Trace(fired=trace.fired, told=trace.told), iter(ends)
    for each in trace.changelog:
        made.changelog.append(each._replace(offset=made.offset))
        made.offset += 1
        if each.key.startswith(MANIFEST_KEY):
            made.skip(next(left))
    return made


def without_row(trace: Trace, place: int) -> Trace:
    """Compaction has removed this row of `b`, which a later one replaces."""
    rows = [each for each in trace.changelog if each.key == ROW]
    assert rows[place] is not rows[-1]
    trace.changelog.remove(rows[place])
    return trace


def counted() -> Trace:
    """The second transaction adds `b` and `c`, and the third one cancels `b`."""
    made = Recording()
    made.ask(schedule_id="a", at=T0 + HOUR)
    made.step(T0)
    made.ask(schedule_id="b", at=T0 + HOUR)
    made.ask(schedule_id="c", at=T0 + HOUR)
    made.step(T0)
    made.ask(schedule_id="b", action="CANCEL")
    made.step(T0)
    return made.trace


def replaced() -> Trace:
    """The second transaction puts another `b` for the first one, which the fourth one fires."""
    made = Recording()
    made.ask(schedule_id="b", at=T0 + HOUR)
    made.step(T0)
    made.ask(schedule_id="b", at=T0 + 1_000)
    made.step(T0)
    made.ask(schedule_id="c", at=T0 + HOUR)
    made.step(T0)
    made.step(T0 + 1_000)
    return made.trace


def test_a_row_is_no_late_end_where_a_manifest_counts_it() -> None:
    made = verified(without_row(laid_out(counted(), [0, 2, 1]), 0))
    assert made.findings == []
    assert (made.counts.checked, made.counts.compacted) == (1, 2)


@pytest.mark.parametrize("ends", [[0, 1, 1, 2], [0, 2, 1, 1]])
def test_a_row_is_no_late_end_where_a_later_transaction_rests_on_it(ends: list[int]) -> None:
    """Whether ends go on to come late, or one end too many has come meanwhile."""
    made = verified(without_row(laid_out(replaced(), ends), 1))
    assert made.findings == []
    assert made.counts.compacted > 0


def test_two_late_ends_are_no_transaction_whose_slot_was_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its row was replaced in the next one, and of its manifest a later one took the slot."""
    monkeypatch.setattr(sequence, "MANIFESTS_KEPT", 1)
    made = Recording()
    for name, action in (("a", "UPSERT"), ("a", "UPSERT"), ("b", "UPSERT"), ("b", "CANCEL")):
        made.ask(schedule_id=name, action=action, at=T0 + HOUR)
        made.step(T0)
    trace = laid_out(made.trace, [0, 0, 0, 4])
    end, _ = at_manifest(trace, 2)
    begin, _ = at_manifest(trace, 1)
    del trace.changelog[begin + 1 : end + 1]
    found = verified(trace)
    assert found.findings == []
    assert (found.counts.checked, found.counts.compacted) == (2, 1)


def test_a_late_end_excuses_no_finding() -> None:
    trace = laid_out(counted(), [0, 2, 1])
    assert verified(trace).counts.compacted == 0
    _, sealed = at_manifest(trace, 1)
    rewritten(trace, 1, pending=sealed.pending + 1)
    assert [each.breach for each in verified(trace).findings][:1] == [Breach.PENDING]


def test_nothing_is_asked_where_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_asks(*_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(Trace, "is_void", nobody_asks)
    assert verified(laid_out(counted(), [0, 2, 1])).findings == []
