"""What a mirror carried from a log that was compacted: what is gone there leaves no hole here."""

from __future__ import annotations

from tests.unit.engine.driver import HOUR, T0
from tests.unit.verification.trace import Trace, Verification, varied


def carried(trace: Trace) -> Trace:
    """The trace as a mirror carries it in one transaction, of rows that nothing has replaced."""
    last = {record.key: record.offset for record in trace.changelog}
    kept = [each for each in trace.changelog if last[each.key] == each.offset]
    assert len(kept) < len(trace.changelog)
    copied = [each._replace(offset=offset) for offset, each in enumerate(kept)]
    return Trace(copied, told=trace.told, offset=len(copied), void=set())


def test_rows_that_are_gone_in_the_source_are_no_finding() -> None:
    trace = carried(varied())
    made = Verification()
    made.partition.elsewhere = ((0, trace.offset),)
    made.outputs.elsewhere_until_ms = T0 + HOUR
    for _ in range(2):
        made.round(trace)
    assert made.findings == []
    assert made.counts.elsewhere == made.counts.transactions > 40
