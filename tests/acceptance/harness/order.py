"""The order in groups: those that were pending together come out in due order, ties as accepted.

Pending is what had its verdict in a transaction that had ended when another fired; a request that
lay in the log without a verdict was nobody's turn yet.  Shares no code with belfry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.acceptance.harness.evidence import shown, token
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import Sent

Fire = tuple[Record, Sent]
Verdicts = Mapping[str, Mapping[str, Any]]


def out_of_order(
    fired: Iterable[Record], by_token: Mapping[bytes, Sent], verdicts: Verdicts
) -> Iterator[str]:
    """A sentence for each record that came out when it was another's turn."""
    groups: dict[tuple[str, str], list[Fire]] = defaultdict(list)
    for record in fired:
        one = by_token.get(token(record.value))
        if one and one.group and record.header("belfry-occurrence") != b"-1":
            groups[one.tenant, one.group].append((record, one))
    for name, fires in groups.items():
        if len({record.partition for record, _ in fires}) > 1:
            yield f"group {name} came out on several partitions"
        fires.sort(key=lambda fire: fire[0].offset)
        yield from _of_group(fires, verdicts)


def _of_group(fires: Iterable[Fire], verdicts: Verdicts) -> Iterator[str]:
    """Each against the latest due before it: had it been pending by then, it was its turn."""
    last: Sent | None = None
    last_fired_ms = 0
    for record, one in fires:
        if last is None or _rank(one) >= _rank(last):
            last, last_fired_ms = one, record.timestamp_ms
            continue
        verdict = verdicts.get(one.request_id)
        if verdict and verdict["committed_ms"] < last_fired_ms:
            yield f"{shown(one)} came out after {shown(last)}"


def _rank(one: Sent) -> tuple[int, int]:
    return one.due_ms, one.offset
