"""The quick way to read a request, byte by byte: what it takes, and what it leaves to fastavro.

Whatever it takes is what fastavro reads; and it takes what most requests look like.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.wire import catalogue, framing, quick
from belfry.wire.quick import expand, read_plain
from belfry.wire.requests import RequestReader

NAME = "ScheduleRequest"
NOW = 1_800_000_000_000
HEAD = framing.single_object(NAME)
READER = RequestReader()
TEXTS: dict[str, Any] = {"event_type": "type", "group": "group", "key": b"key", "payload": b"pay"}
USUAL: dict[str, Any] = {"key": b"key", "payload": b"pay"}


def body(**fields: Any) -> bytes:
    return catalogue.encode(NAME, {"tenant": "shop", "schedule_id": "id", "at": NOW, **fields})


def general(encoded: bytes) -> Request | None:
    """What fastavro reads; None where that is no request."""
    found = READER.read_whole((0, NOW, None, HEAD + encoded, None))
    return None if isinstance(found, Rejection) else found


def taken(encoded: bytes) -> Request | None:
    """What the quick way reads; None where it leaves the bytes to fastavro."""
    plain = read_plain(encoded, 0)
    return None if plain is None else expand(plain)


def is_taken(encoded: bytes) -> bool:
    """Whether the quick way takes it, and then as fastavro reads it."""
    found = taken(encoded)
    assert found is None or found == general(encoded)
    return found is not None


@pytest.mark.parametrize("size", [0, 1, 63, 64, 100])
@pytest.mark.parametrize("name", ["tenant", "schedule_id", "request_id"])
@pytest.mark.parametrize("others", [USUAL, TEXTS])
def test_names_of_up_to_63_bytes_are_taken(others: dict[str, Any], name: str, size: int) -> None:
    assert is_taken(body(**others, **{name: "x" * size})) == (size < 64)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8_191, 8_192, 70_000])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("others", [{}, USUAL, {**TEXTS, "request_id": "r"}])
def test_texts_of_any_length_are_taken(others: dict[str, Any], name: str, size: int) -> None:
    given = TEXTS[name][:1] * size
    assert is_taken(body(**{**others, name: given}))


@pytest.mark.parametrize("there", list(product([False, True], repeat=5)))
def test_each_text_may_be_there_or_not(there: tuple[bool, ...]) -> None:
    named = {**TEXTS, "request_id": "asked"}
    fields = {name: named[name] for name, given in zip(named, there, strict=True) if given}
    assert is_taken(body(**fields))


@pytest.mark.parametrize("others", [USUAL, TEXTS])
def test_instants_of_1970_to_2039_are_taken_to_the_millisecond(others: dict[str, Any]) -> None:
    """Those whose number takes six bytes: from the middle of 1970 on."""
    least, most = 1 << 34, (1 << 41) - 1
    inside = [least, most, NOW, *(least | 1 << bit for bit in range(41))]
    assert all(is_taken(body(**others, at=at)) for at in inside)
    assert not any(
        is_taken(body(**others, at=at)) for at in (least - 1, most + 1, 0, -1, -NOW, -least - 1)
    )


def test_a_request_that_says_anything_more_is_left_to_fastavro() -> None:
    given: dict[str, Any] = {
        "long": 0, "string": "", "array": [{"name": "n", "value": None}], "boolean": True,
    }  # fmt: skip
    said = {"http_targets": [{"url": "u"}], "standing": {"next_at": 0}}
    for field in catalogue.schema(NAME)["fields"]:
        name, avro = field["name"], field["type"]
        if name in ("tenant", "schedule_id", "at", "request_id", *TEXTS):
            continue
        inner = avro[1] if isinstance(avro, list) else avro
        if isinstance(inner, dict) and "symbols" in inner:
            values = [each for each in inner["symbols"] if each not in ("UPSERT", "AT")]
        else:
            kind = inner["type"] if isinstance(inner, dict) else inner
            values = [said[name] if name in said else given[kind]]
        for value, others in product(values, (USUAL, TEXTS)):
            assert not is_taken(body(**others, **{name: value})), (name, value)


BASES: dict[str, bytes] = {
    "usual": body(**USUAL),
    "asked": body(**USUAL, request_id="asked"),
    "texts": body(**TEXTS),
    "asked with texts": body(**TEXTS, request_id="asked"),
    "bare": body(),
    "long": body(key=b"k", payload=b"p" * 65),
}


@pytest.mark.parametrize("base", BASES)
def test_whichever_byte_is_another_one_it_reads_what_fastavro_reads(base: str) -> None:
    encoded = BASES[base]
    for at, byte in enumerate(encoded):
        others = {0, 1, 2, 3, 4, 127, 128, 129, 255, byte ^ 1, byte ^ 128, byte ^ 2, byte ^ 4}
        for other in others - {byte}:
            is_taken(encoded[:at] + bytes([other]) + encoded[at + 1 :])


@pytest.mark.parametrize("base", BASES)
def test_a_request_that_is_cut_or_goes_on_is_left_to_fastavro(base: str) -> None:
    encoded = BASES[base]
    assert is_taken(encoded)
    assert not any(is_taken(encoded[:end]) for end in range(len(encoded)))
    assert not any(is_taken(encoded + more) for more in (b"\0", b"\2", b"x"))
    # One byte that is missing somewhere, or comes twice.
    for at in range(len(encoded)):
        is_taken(encoded[:at] + encoded[at + 1 :])
        is_taken(encoded[: at + 1] + encoded[at:])


@pytest.mark.parametrize("others", [{"key": b"k"}, {"group": "g", "event_type": "t"}])
def test_a_size_with_needless_bytes_is_read_and_an_endless_one_is_not(
    others: dict[str, Any],
) -> None:
    encoded = body(**others, payload=b"pay")
    before, after = encoded.split(b"\6pay")
    for needless in range(1, 10):
        size = b"\x86" + b"\x80" * (needless - 1) + b"\0"
        assert is_taken(before + size + b"pay" + after), needless
    for size in (b"\x86" + b"\x80" * 9 + b"\0", b"\x86" + b"\x80" * 50, b"\xff" * 9 + b"\1"):
        assert taken(before + size + b"pay" + after) is None


@pytest.mark.parametrize("base", ["usual", "asked with texts"])
def test_a_request_begins_where_its_frame_ends(base: str) -> None:
    encoded = BASES[base]
    for head in (b"", b"\0\0\0\0\7", HEAD):
        assert read_plain(head + encoded, len(head)) == read_plain(encoded, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [("tenant", "shop"), ("schedule_id", "id"), ("event_type", "type"), ("group", "group"),
     ("request_id", "asked")],
)  # fmt: skip
def test_a_text_that_is_no_utf_8_makes_no_request(name: str, text: str) -> None:
    fields: dict[str, Any] = {**TEXTS, "request_id": "asked"}
    broken = body(**fields).replace(text.encode(), b"\xff" * len(text))
    plain = read_plain(broken, 0)
    assert plain is not None
    assert expand(plain) is None
    assert general(broken) is None


def test_the_usual_shape_is_taken_apart_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither field by field nor anew each time."""

    def never(*given: object) -> Any:
        raise AssertionError(given)

    monkeypatch.setattr(quick, "_read_with_texts", never)
    usual = [body(**USUAL), body(**USUAL, request_id="asked"), body(key=b"", payload=b"p" * 9_000)]
    for name in ("tenant", "schedule_id", "key"):
        text = b"k" * 63 if name == "key" else "x" * 63
        usual.append(body(**{**USUAL, name: text}))
    assert all(map(is_taken, usual))
    monkeypatch.setattr(quick, "_learn_shape", never)
    monkeypatch.setattr(quick, "_learn_upper", never)
    assert all(map(is_taken, usual))


def test_what_is_remembered_of_shapes_and_instants_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quick, "_MOST_KEPT", 3)
    monkeypatch.setattr(quick, "_shapes", {})
    monkeypatch.setattr(quick, "_uppers", {})
    for number in range(1, 40):
        hours = number * 3_600_000
        assert is_taken(body(**USUAL | {"key": b"k" * number}, at=NOW + hours))
        assert len(quick._shapes) <= 3
        assert len(quick._uppers) <= 3
    assert quick._shapes
    assert quick._uppers


def test_a_request_id_is_as_long_as_it_says() -> None:
    """A size of 128 is one byte of two, however many bytes follow."""
    encoded = body(**USUAL, request_id="x" * 63)
    said = b"\x7e" + b"x" * 63
    assert encoded.count(said) == 1
    for size in (b"\x80", b"\x7c", b"\x82"):
        for count in (62, 63, 64, 65):
            assert not is_taken(encoded.replace(said, size + b"x" * count)) or count * 2 == size[0]


@pytest.mark.parametrize("key", [b"", b"k", b"k" * 63])
@pytest.mark.parametrize("schedule_id", ["", "i", "i" * 63])
@pytest.mark.parametrize("tenant", ["", "t", "t" * 63])
def test_what_most_requests_look_like_goes_the_quickest_way(
    monkeypatch: pytest.MonkeyPatch, tenant: str, schedule_id: str, key: bytes
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("that is the longer way")

    monkeypatch.setattr(quick, "_read_with_texts", never)
    for size in (0, 1, 63, 64, 9_000):
        given = {"tenant": tenant, "schedule_id": schedule_id, "key": key, "payload": b"p" * size}
        assert is_taken(body(**given))
        assert is_taken(body(**given, request_id="asked"))
        behind_head = HEAD + body(**given)
        assert read_plain(behind_head, len(HEAD)) == read_plain(body(**given), 0)
