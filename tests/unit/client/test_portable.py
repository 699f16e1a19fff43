"""What an export writes is what an import asks for, without loss."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.client.portable import NotPortable, portable, request_fields
from belfry.schedules.fields import EMPTY, OF_A_RULE
from belfry.schedules.rule import KINDS, Rule, encode_rule
from belfry.schedules.targets import HttpTarget, encode_targets, target_of
from belfry.schedules.triggers.registry import KINDS as TRIGGERS
from belfry.store.layout.pending import Pending, encode_headers, encode_pending
from belfry.store.layout.pending_bytes import PAUSED

NEXT = 1_800_000_060_000
RULES = (
    Rule("AT"),
    Rule("AFTER"),
    Rule("AFTER", misfire="SKIP", max_lateness_ms=0),
    Rule("EVERY", when=1, start_at=NEXT - 5, end_at=NEXT + 5, max_fires=9),
    Rule("CRON", when="0 9 * * MON", timezone="Europe/Paris", overlap="SKIP", serial=True,
         ack_timeout_ms=5),
    Rule("EVERY", when=900_000, timezone="Europe/Paris", except_cron="* 0-5 * * *"),
)  # fmt: skip


def record(rule: Rule, flags: int = 0) -> bytes:
    row = Pending(
        due_ms=NEXT + 7,
        nominal_ms=NEXT,
        accepted_ms=NEXT - 1,
        seq=5,
        life=9,
        version=3,
        occurrence=2,
        kind=KINDS.index(rule.kind),
        when={"AT": NEXT, "AFTER": 250}.get(rule.kind, 0),
        jitter_ms=11,
        tenant=b"demo",
        schedule_id="order/é".encode(),
        group=b"g",
        event_type=b"t",
        key=b"\xff\0",
        headers=encode_headers([(b"a", b"1"), (b"a", None), (b"b", b"\xfe")]),
        extra=encode_rule(rule),
        payload='{"é":1}'.encode(),
    )
    return encode_pending(row, flags)


def test_http_targets_travel() -> None:
    targets = (HttpTarget("https://h/x", 5, 2, "s", (("a", "b"),)), HttpTarget("https://i/"))
    line = orjson.dumps(portable(record(Rule("AT", targets=encode_targets(targets)))))
    fields = request_fields(orjson.loads(line))
    assert tuple(map(target_of, fields["http_targets"])) == targets


@pytest.mark.parametrize("bad", ["https://h/", [5], [{}], [{"url": "https://h/", "uri": ""}]])
def test_http_targets_that_are_none(bad: object) -> None:
    given = {**orjson.loads(orjson.dumps(portable(record(RULES[0])))), "http_targets": bad}
    with pytest.raises(NotPortable, match="http_targets"):
        request_fields(given)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
@pytest.mark.parametrize("flags", [0, PAUSED])
def test_there_and_back(rule: Rule, flags: int) -> None:
    line = orjson.dumps(portable(record(rule, flags)))
    ruled = {name: getattr(rule, name) for name in OF_A_RULE}
    if rule.recurs:
        ruled[TRIGGERS[rule.kind].field.name] = rule.when
    assert request_fields(orjson.loads(line)) == {
        **EMPTY,
        **ruled,
        "serial": bool(rule.serial),
        "action": "CREATE",
        "tenant": "demo",
        "schedule_id": "order/é",
        "at": NEXT if rule.kind == "AT" else None,
        "delay_ms": 250 if rule.kind == "AFTER" else None,
        "jitter_ms": 11,
        "group": "g",
        "event_type": "t",
        "key": b"\xff\0",
        "payload": '{"é":1}'.encode(),
        "headers": [
            {"name": "a", "value": b"1"},
            {"name": "a", "value": None},
            {"name": "b", "value": b"\xfe"},
        ],
        "standing": {"next_at": NEXT, "occurrence": 2, "version": 3, "paused": flags == PAUSED},
    }


def test_a_delay_that_an_earlier_build_called_an_instant_is_a_delay() -> None:
    given = {"tenant": "d", "schedule_id": "a", "kind": "AT", "delay_ms": 250}
    exported = {**given, "standing": {"next_at": NEXT}}
    assert request_fields(exported)["kind"] == "AFTER"
    # It goes on where it stood, and does not begin anew.
    assert request_fields(exported)["standing"]["next_at"] == NEXT
    assert request_fields({**exported, "at": NEXT})["kind"] == "AT"
    # Nobody has exported this one, so workers say what is wrong with it.
    assert request_fields(given)["kind"] == "AT"


@pytest.mark.parametrize("value", [None, b"", b"text", b"\xff"])
def test_no_bytes_are_no_null(value: bytes | None) -> None:
    row = Pending(
        NEXT, NEXT, 0, 0, 0, 1, 0, 0, NEXT, 0, b"d", b"a", b"", b"", value, b"", b"", value
    )
    fields = request_fields(portable(encode_pending(row)))
    assert (fields["key"], fields["payload"]) == (value, value)


GOOD: dict[str, Any] = {"tenant": "d", "schedule_id": "a", "kind": "AT", "at": NEXT}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "not list"),
        ({"tenant": "d"}, "schedule_id is missing"),
        ({**GOOD, "colour": 1}, "colour: no such field"),
        ({**GOOD, "at": "tomorrow"}, "no instant"),
        ({**GOOD, "max_fires": "3"}, "max_fires is '3'"),
        ({**GOOD, "max_fires": True}, "max_fires is True"),
        ({**GOOD, "payload_text": "a", "payload_base64": "YQ=="}, "keep one"),
        ({**GOOD, "key_base64": "é"}, "key cannot be read"),
        ({**GOOD, "headers": [{"value_text": "a"}]}, "is no header"),
        ({**GOOD, "headers": 5}, "headers"),
        ({**GOOD, "standing": {}}, "standing"),
        ({**GOOD, "standing": {"next_at": NEXT, "version": None}}, "standing.version"),
        ({**GOOD, "standing": {"next_at": NEXT, "colour": 1}}, "standing"),
    ],
)
def test_what_is_not_portable(given: object, words: str) -> None:
    with pytest.raises(NotPortable, match=words):
        request_fields(given)


def test_a_line_without_standing_begins_anew() -> None:
    assert request_fields(GOOD)["standing"] is None
