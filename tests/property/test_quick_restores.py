"""What is written and read by hand for backups and restores is what the general way gives."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from belfry.client.portable import portable, request_fields
from belfry.client.portable_lines import line_of
from belfry.client.requests import problem
from belfry.client.usual_lines import is_usual, ready_of
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import KINDS, Rule, encode_rule
from belfry.store.layout.pending import Encrypted, Pending, encode_headers, encode_pending
from belfry.store.layout.pending_bytes import PAUSED
from belfry.wire import catalogue
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.quick_verdicts import quick_verdict
from belfry.wire.quick_writing import NAME, encode_request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
SHORT = st.text("ab/é", min_size=1, max_size=12)
MAYBE_TEXT = st.none() | TEXTS
MAYBE_BYTES = st.none() | st.binary(max_size=80)
LONGS = st.integers(-(2**63) + 1, 2**63 - 1)
INSTANTS = st.integers(-62_135_596_800_000, 253_402_300_799_999)
HEADERS = st.lists(st.fixed_dictionaries({"name": TEXTS, "value": MAYBE_BYTES}), max_size=3)
STANDING = st.none() | st.fixed_dictionaries(
    {"next_at": LONGS, "occurrence": LONGS, "version": LONGS, "paused": st.booleans()}
)
REQUESTS = st.fixed_dictionaries(
    {
        "tenant": TEXTS,
        "schedule_id": TEXTS,
        "action": st.sampled_from(["CREATE", "UPSERT", "CANCEL", "ACK"]),
        "kind": st.sampled_from(["AT", "AFTER", "CRON"]),
        "at": st.none() | LONGS,
        "delay_ms": st.none() | LONGS,
        "event_type": MAYBE_TEXT,
        "group": MAYBE_TEXT,
        "key": MAYBE_BYTES,
        "payload": MAYBE_BYTES,
        "headers": HEADERS,
        "request_id": MAYBE_TEXT,
        "standing": STANDING,
    }
)
# Any other field makes a request unusual.
OTHERS = st.fixed_dictionaries(
    {},
    optional={
        "cron": TEXTS,
        "serial": st.booleans(),
        "priority": LONGS,
        "jitter_ms": LONGS,
        "misfire": st.sampled_from(["SKIP", "FIRE_ALL"]),
    },
)


@given(usual=REQUESTS, others=OTHERS)
def test_a_request_has_the_bytes_of_the_general_writer(
    usual: dict[str, Any], others: dict[str, Any]
) -> None:
    fields = {**EMPTY, **usual, **others}
    assert encode_request(fields) == catalogue.encode(NAME, fields)


@pytest.mark.parametrize(
    "odd",
    [
        {"headers": ()},
        {"payload": bytearray(b"p")},
        {"payload": Encrypted(b"sealed")},
    ],
)
def test_a_value_of_another_type_has_the_bytes_of_the_general_writer(odd: dict[str, Any]) -> None:
    fields = {**EMPTY, "tenant": "t", "schedule_id": "a", "action": "CREATE", "kind": "AT", **odd}
    assert encode_request(fields) == catalogue.encode(NAME, fields)


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": 2**63},
        {"at": "2027"},
        {"at": True},
        {"payload": "text"},
        {"tenant": None},
        {"tenant": "\ud800"},
        {"action": "CREAT"},
        {"kind": ["AT"]},
        {"headers": [{"name": 5, "value": None}]},
        {"headers": [("a", b"b")]},
        {"headers": [None]},
        {"standing": {"next_at": 5, "occurrence": 2**64, "version": 1, "paused": False}},
        {"standing": {"next_at": 5, "occurrence": 0, "version": 1, "paused": 1}},
    ],
)
def test_a_value_that_is_no_avro_has_the_error_of_the_general_writer(wrong: dict[str, Any]) -> None:
    fields = {**EMPTY, "tenant": "t", "schedule_id": "a", "action": "CREATE", **wrong}
    with pytest.raises((ValueError, OverflowError, TypeError)) as general:
        catalogue.encode(NAME, fields)
    with pytest.raises(general.type) as ours:
        encode_request(fields)
    assert str(ours.value) == str(general.value)


@given(
    kind=st.sampled_from(KINDS),
    instants=st.tuples(INSTANTS, INSTANTS),
    same=st.booleans(),
    numbers=st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 2**32 - 1), st.integers(0, 9)),
    texts=st.tuples(TEXTS, TEXTS, st.none() | st.just("g"), st.none() | st.just("t")),
    contents=st.tuples(MAYBE_BYTES, MAYBE_BYTES, st.booleans()),
    headers=st.lists(st.tuples(st.sampled_from([b"a", "é".encode()]), MAYBE_BYTES), max_size=2),
    late=st.booleans(),
    paused=st.booleans(),
)
def test_a_line_is_that_of_the_general_way_and_can_be_read(
    *,
    kind: str,
    instants: tuple[int, int],
    same: bool,
    numbers: tuple[int, int, int],
    texts: tuple[str, str, str | None, str | None],
    contents: tuple[bytes | None, bytes | None, bool],
    headers: list[tuple[bytes, bytes | None]],
    late: bool,
    paused: bool,
) -> None:
    at_ms, nominal_ms = (instants[0], instants[0]) if same else instants
    occurrence, version, jitter_ms = numbers
    tenant, schedule_id, group, event_type = texts
    key, payload, encrypted = contents
    rule = Rule("AT", max_lateness_ms=5) if late and kind == "AT" else Rule("AT")
    row = Pending(
        nominal_ms, nominal_ms, 1, 2, 3, version, occurrence, KINDS.index(kind),
        at_ms, jitter_ms, tenant.encode(), schedule_id.encode(), (group or "").encode(),
        (event_type or "").encode(), key, encode_headers(headers), encode_rule(rule),
        Encrypted(payload) if encrypted and payload else payload,
    )  # fmt: skip
    if kind not in ("AT", "AFTER"):
        row = row._replace(extra=encode_rule(Rule(kind, when=5 if kind == "EVERY" else "x")))
    record = encode_pending(row, PAUSED if paused else 0)
    line = line_of(record)
    assert line == orjson.dumps(portable(record)) + b"\n"
    usual = kind == "AT" and not (late or headers or (encrypted and payload))
    assert is_usual(line) == (usual and plain(tenant, schedule_id, key, payload))
    check_ready(line)
    fields = request_fields(orjson.loads(line))
    assert (fields["schedule_id"], fields["key"], fields["payload"]) == (schedule_id, key, payload)
    assert fields["standing"]["next_at"] == nominal_ms


@pytest.mark.parametrize("paused", [False, True])
def test_a_line_says_whether_the_schedule_is_paused(*, paused: bool) -> None:
    row = Pending(
        9, 9, 1, 2, 3, 1, 0, KINDS.index("AT"), 9, 0, b"t", b"a", b"", b"", None,
        encode_headers([]), encode_rule(Rule("AT")), None,
    )  # fmt: skip
    record = encode_pending(row, PAUSED if paused else 0)
    line = line_of(record)
    assert orjson.loads(line)["standing"]["paused"] is paused
    assert line == orjson.dumps(portable(record)) + b"\n"


def plain(*texts: str | bytes | None) -> bool:
    """Whether texts are printable ASCII that JSON writes as it is."""
    coded = (each.encode() if isinstance(each, str) else each or b"" for each in texts)
    return all(all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in each) for each in coded)


GOOD = orjson.dumps(
    {
        "tenant": "t", "schedule_id": "a", "kind": "AT", "at": "2030-01-31T23:59:59.999Z",
        "jitter_ms": 5, "group": "g", "payload_text": "[]~!#",
        "standing": {
            "next_at": "2030-02-28T00:00:00.000Z", "occurrence": 10, "version": 1, "paused": True
        },
    }
) + b"\n"  # fmt: skip


READY = GOOD.replace(b'"jitter_ms":5,', b"")


@given(place=st.integers(0, len(GOOD) - 1), put=st.sampled_from(GOOD + b"\\\x00\x7f\xff:9"))
def test_a_line_that_is_good_by_its_form_can_be_restored(place: int, put: int) -> None:
    assert is_usual(GOOD)
    changed = GOOD[:place] + bytes((put,)) + GOOD[place + 1 :]
    for line in (changed, GOOD[:place] + GOOD[place + 1 :]):
        if is_usual(line):
            assert request_fields(orjson.loads(line))["action"] == "CREATE"
        check_ready(line)


def check_ready(line: bytes) -> bool:
    """Whether a line is ready; then it has the bytes of the other way, and passes all checks."""
    ready = ready_of(line)
    if ready is not None:
        fields = {**request_fields(orjson.loads(line)), "request_id": "id"}
        assert is_usual(line)
        assert problem(fields, 1_000_000_000_000) is None
        assert problem(fields, 4_000_000_000_000) is None
        assert ready.body("id") == encode_request(fields)
        assert (ready.tenant, ready.schedule_id) == (fields["tenant"], fields["schedule_id"])
    return ready is not None


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (b"", b""),
        (b'"group":"g",', b""),
        (b'"group":"g",', b'"event_type":"e","group":"g","key_text":"",'),
        (b'"payload_text":"[]~!#",', b""),
        (b'"occurrence":10', b'"occurrence":4294967294'),
        (b"true", b"false"),
        (b'"tenant":"t"', b'"tenant":"a.b-c_9"'),
        (b'"schedule_id":"a"', b'"schedule_id":"' + b"x/ " * 85 + b'"'),
    ],
)
def test_a_usual_line_is_ready(now: bytes, then: bytes) -> None:
    line = READY.replace(now, then)
    assert line != READY or now == then
    assert check_ready(line)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (b'"tenant":"t"', b'"tenant":"a..b"'),
        (b'"tenant":"t"', b'"tenant":""'),
        (b'"schedule_id":"a"', b'"schedule_id":""'),
        (b'"schedule_id":"a"', b'"schedule_id":"' + b"x" * 256 + b'"'),
        (b'"group":"g"', b'"group":""'),
        (b'"group":"g"', b'"event_type":"","group":"g"'),
        (b"2030-01-31T23:59:59.999Z", b"2001-09-01T00:00:00.000Z"),
        (b"2030-02-28T00:00:00.000Z", b"2001-09-01T00:00:00.000Z"),
        (b"2030-01-31T23:59:59.999Z", b"2139-12-01T00:00:00.000Z"),
        (b"2030-02-28T00:00:00.000Z", b"2139-12-01T00:00:00.000Z"),
        (b'"occurrence":10', b'"occurrence":4294967295'),
        (b'"version":1', b'"version":0'),
        (b'"version":1', b'"version":4294967296'),
        (b'"group":"g",', b'"jitter_ms":99999999999,"group":"g",'),
    ],
)
def test_what_a_check_may_refuse_is_left_to_the_checks(now: bytes, then: bytes) -> None:
    line = READY.replace(now, then)
    assert line != READY
    assert is_usual(line)
    assert not check_ready(line)


@pytest.mark.parametrize("instant", [b"2030-02-30T00:00:00.000Z", b"2030-01-31T24:00:01.000Z"])
def test_an_instant_that_is_none_is_left_to_the_reader(instant: bytes) -> None:
    assert not is_usual(GOOD.replace(b"2030-02-28T00:00:00.000Z", instant))
    assert not is_usual(GOOD.replace(b"2030-01-31T23:59:59.999Z", instant))


@given(
    names=st.tuples(SHORT, SHORT, MAYBE_TEXT, MAYBE_TEXT),
    outcome=st.sampled_from(Outcome),
    numbers=st.tuples(st.none() | st.integers(-5, 200), st.none() | st.integers(0, 200)),
    instants=st.tuples(LONGS | INSTANTS, st.none() | INSTANTS),
    told=st.tuples(st.none() | st.just("exists"), st.none() | st.just("It lives.")),
    source=st.tuples(st.none() | SHORT, st.none() | st.integers(-1, 2**62)),
    rest=st.sampled_from([b"", b"\0", b"more"]),
    cut=st.integers(0, 5),
)
def test_a_verdict_is_that_of_the_general_reader_or_left_to_it(
    *,
    names: tuple[str, str, str | None, str | None],
    outcome: Outcome,
    numbers: tuple[int | None, int | None],
    instants: tuple[int, int | None],
    told: tuple[str | None, str | None],
    source: tuple[str | None, int | None],
    rest: bytes,
    cut: int,
) -> None:
    event = LifecycleEvent(
        tenant=names[0], schedule_id=names[1], outcome=outcome, request_id=names[2],
        fire_id=names[3], version=numbers[0], at=instants[0], due_at=instants[1],
        code=told[0], reason=told[1], source_topic=source[0], source_partition=numbers[1],
        source_offset=source[1],
    )  # fmt: skip
    check(encode_lifecycle(event) + rest)
    check(encode_lifecycle(event)[: -cut or None])


@given(
    names=st.tuples(SHORT, SHORT, SHORT),
    version=st.integers(1, 63),
    instants=st.tuples(st.integers(2**39, 2**41 - 1), st.integers(2**39, 2**41 - 1)),
    place=st.tuples(st.integers(0, 63), st.integers(0, 2**62 - 1)),
)
def test_the_usual_verdict_is_read_by_hand(
    names: tuple[str, str, str], version: int, instants: tuple[int, int], place: tuple[int, int]
) -> None:
    event = LifecycleEvent(
        tenant=names[0], schedule_id=names[1], outcome=Outcome.ACCEPTED, request_id=names[2],
        version=version, at=instants[0], due_at=instants[1], source_topic="belfry.schedules",
        source_partition=place[0], source_offset=place[1],
    )  # fmt: skip
    body = encode_lifecycle(event)
    assert quick_verdict(body) is not None
    check(body)


@given(offset=st.integers(-(2**63), 2**63 - 1), rest=st.sampled_from([b"", b"\0", b"more"]))
@example(offset=-1, rest=b"")
@example(offset=2**62 - 1, rest=b"")
@example(offset=2**62, rest=b"")
@example(offset=17, rest=b"\0")
def test_an_offset_from_0_up_that_ends_the_record_is_read_by_hand(offset: int, rest: bytes) -> None:
    event = LifecycleEvent(
        tenant="t", schedule_id="s", outcome=Outcome.ACCEPTED, request_id="r", version=1, at=2**40,
        due_at=2**40, source_topic="belfry.schedules", source_partition=3, source_offset=offset,
    )  # fmt: skip
    body = encode_lifecycle(event) + rest
    assert (quick_verdict(body) is not None) == (0 <= offset < 2**62 and not rest)
    check(body)


def check(body: bytes) -> None:
    """Whatever is read by hand is what fastavro reads, with nothing in the other fields."""
    quick = quick_verdict(body)
    if quick is None:
        return
    record = catalogue.own_reader("LifecycleEvent").read(body)
    assert record == {
        "tenant": quick.tenant,
        "schedule_id": quick.schedule_id,
        "outcome": quick.outcome,
        "request_id": quick.request_id,
        "fire_id": None,
        "version": quick.version,
        "at": quick.at_ms,
        "due_at": quick.due_ms,
        "code": None,
        "reason": None,
        "target": None,
        "attempt": None,
        "source_topic": quick.topic,
        "source_partition": quick.partition,
        "source_offset": quick.offset,
    }


@given(INSTANTS)
def test_an_instant_as_it_is_shown_is_read_back(at_ms: int) -> None:
    assert parse_instant(format_instant(at_ms)) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        "2026-W48-6T09:00:00.000Z",
        "2026-13-01T09:00:00.000Z",
        "2026-12-01T24:00:01.000Z",
        "2026-12-01T09:00:00,000Z",
        "2026-12-01T09:00:000000Z",
        "2026-12-01T0900:00.0000Z",
        "9999-12-31T23:Z\x00:59.566Z",
        "9599-01-01T23Z\x000:99.679Z",
        "２026-12-01T09:00:00.000Z",
    ],
)
def test_what_only_looks_like_it_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no instant"):
        parse_instant(text)
