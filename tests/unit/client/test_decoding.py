"""belfry's records in any frame are read; payloads of users are never taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.client.decoding import MOST_READERS, Decoder
from belfry.client.errors import Conflict, NotFound, Rejected, TooLate, refusal
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire import catalogue, framing
from tests.unit.client.fake_worker import EMPTY_EVENT

EVENT: dict[str, Any] = {
    **EMPTY_EVENT,
    "tenant": "demo",
    "schedule_id": "hello",
    "outcome": "ACCEPTED",
    "request_id": "r",
    "at": 1,
    "due_at": 2,
}
BODY = catalogue.encode("LifecycleEvent", EVENT)
NAME = "LifecycleEvent"


@pytest.mark.parametrize("frame", [framing.prefix(7), framing.single_object(NAME)])
def test_both_frames_are_read_without_a_registry(frame: bytes) -> None:
    assert Decoder(NAME, only=True).record(frame + BODY) == EVENT


def test_an_unknown_fingerprint_is_read_as_ours_where_nothing_else_can_be() -> None:
    value = framing.SINGLE_OBJECT_MARKER + bytes(8) + BODY
    assert Decoder(NAME, only=True).record(value) == EVENT
    assert Decoder(NAME, only=False).record(value) is None


def test_the_writers_schema_is_used_where_the_registry_has_it() -> None:
    writer = dict(catalogue.schema(NAME))
    # A newer writer: one more outcome, and a field that we do not know.
    fields = [dict(each) for each in writer["fields"]]
    enum = dict(fields[2]["type"])
    enum["symbols"] = [*enum["symbols"], "MOVED"]
    fields[2] = {**fields[2], "type": enum}
    writer["fields"] = [*fields, {"name": "later", "type": "long", "default": 0}]
    body = _encoded(writer, {**EVENT, "outcome": "MOVED", "later": 5})
    asked: list[int | bytes] = []

    def look(reference: int | bytes) -> Any:
        asked.append(reference)
        return writer

    decoder = Decoder(NAME, look, only=True)
    for _ in range(2):
        found = decoder.record(framing.prefix(7) + body)
        assert found == {**EVENT, "outcome": "UNKNOWN"}
    assert asked == [7]
    assert decoder.own_body(framing.prefix(7) + body) is None


def test_only_a_body_of_our_schema_is_given_as_it_is() -> None:
    decoder = Decoder(NAME, only=True)
    assert decoder.own_body(framing.single_object(NAME) + BODY) == BODY
    assert decoder.own_body(BODY) is None
    assert Decoder(NAME, only=False).own_body(framing.prefix(7) + BODY) is None


def _encoded(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    from io import BytesIO

    from fastavro import parse_schema, schemaless_writer

    body = BytesIO()
    schemaless_writer(body, parse_schema(catalogue.without_logical_types(schema)), record)
    return body.getvalue()


@pytest.mark.parametrize("value", [b"", b"{}", framing.prefix(7) + b"\xff" * 30, BODY])
def test_what_is_none_of_ours_is_none(value: bytes) -> None:
    assert Decoder(NAME, only=True).record(value) is None


def test_a_payload_is_not_taken_for_an_envelope() -> None:
    payload = framing.prefix(7) + BODY
    assert Decoder("FiredEvent", only=False).record(payload) is None
    assert (
        Decoder("FiredEvent", lambda _: catalogue.schema(NAME), only=False).record(payload) is None
    )


def test_a_verdict_is_made_of_a_record() -> None:
    verdict = Verdict.from_record(EVENT)
    assert verdict.outcome is Outcome.ACCEPTED
    assert (verdict.name, verdict.at_ms, verdict.due_ms) == ("demo/hello", 1, 2)
    assert refusal(verdict) is None


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome.NOT_FOUND, NotFound),
        (Outcome.CONFLICT, Conflict),
        (Outcome.TOO_LATE, TooLate),
        (Outcome.REJECTED, Rejected),
    ],
)
def test_a_no_is_an_error_of_its_own(outcome: Outcome, kind: type[Exception]) -> None:
    refused = refusal(Verdict("demo", "hello", outcome, code="c"))
    assert type(refused) is kind
    assert str(refused).startswith(f"{outcome} (c) demo/hello: ")


@pytest.mark.parametrize(
    "outcome", sorted(set(Outcome) - {"NOT_FOUND", "CONFLICT", "TOO_LATE", "REJECTED"})
)
def test_everything_else_is_no_error(outcome: Outcome) -> None:
    assert refusal(Verdict("demo", "hello", outcome)) is None


def test_a_repeat_is_answered_as_the_first_time() -> None:
    first = Verdict("demo", "hello", Outcome.DUPLICATE, code="NOT_FOUND", reason="again")
    assert type(refusal(first)) is NotFound
    assert refusal(Verdict("demo", "hello", Outcome.DUPLICATE, code="ACCEPTED")) is None


def test_references_that_strangers_make_up_are_forgotten_again() -> None:
    """Of each it is asked once while it is among the last; and what is kept has a bound."""
    asked: list[int | bytes] = []
    decoder = Decoder(NAME, asked.append, only=False)
    for number in range(MOST_READERS + 1):
        for _ in range(2):
            assert decoder.record(framing.prefix(number) + BODY) is None
    assert asked == list(range(MOST_READERS + 1))
    assert decoder.record(framing.prefix(MOST_READERS) + BODY) is None
    assert decoder.record(framing.prefix(0) + BODY) is None
    assert asked[MOST_READERS + 1 :] == [0]
