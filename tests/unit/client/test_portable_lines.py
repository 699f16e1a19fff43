"""The line of a schedule that fires once is made by hand, and is that of the general way."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.client.portable import portable
from belfry.client.portable_lines import line_of
from belfry.schedules.rule import KINDS, Rule, encode_rule
from belfry.store.layout.pending import Encrypted, Pending, encode_headers, encode_pending
from belfry.store.layout.pending_bytes import PAUSED

USUAL = Pending(
    due_ms=9, nominal_ms=9, accepted_ms=1, seq=2, life=3, version=4, occurrence=5,
    kind=KINDS.index("AT"), when=9, jitter_ms=0, tenant=b"t", schedule_id="é".encode(), group=b"",
    event_type=b"", key=None, headers=encode_headers([]), extra=encode_rule(Rule("AT")),
    payload=b"p",
)  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"when": 7},
        {"jitter_ms": 6},
        {"group": b"g", "event_type": b"e"},
        {"key": b""},
        {"key": b"\xff", "payload": None},
        {"payload": b"\xff"},
        {"headers": encode_headers([(b"a", b"1"), (b"a", None), (b"b", b"\xfe")])},
        {"extra": encode_rule(Rule("AT", max_lateness_ms=5))},
        {"extra": encode_rule(Rule("AT", misfire="SKIP"))},
        {"payload": Encrypted(b"sealed")},
        {"kind": KINDS.index("AFTER"), "extra": encode_rule(Rule("AFTER")), "when": 250},
    ],
)
@pytest.mark.parametrize("flags", [0, PAUSED])
def test_it_is_that_of_the_general_way(changed: dict[str, Any], flags: int) -> None:
    record = encode_pending(USUAL._replace(**changed), flags)
    assert line_of(record) == orjson.dumps(portable(record)) + b"\n"
