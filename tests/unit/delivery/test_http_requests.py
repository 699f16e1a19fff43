"""What goes over the wire: headers, signature, body."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Again, Answer, Delivered, End, Failed
from belfry.delivery.follow_ups import Places, follow_up
from belfry.delivery.http_requests import NoSecret, Post, Secrets, post_of, signature
from belfry.delivery.work import NotADelivery, Work, work_of
from belfry.schedules.identity import Homes
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import HEADER, RETRIES, DeliveryState, decode_state, encode_state
from belfry.wire import catalogue, framing
from belfry.wire.claims import proves
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.lifecycle import decode_lifecycle
from belfry.wire.record import Headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
NOW = 1_800_000_000_123
EVENT = FiredEvent(
    "demo", "order/4711 é", "0f" * 16, 1, 0, NOW - 50, NOW - 40, NOW - 30, "paid", "g", 0,
    b'{"a":1}',
)  # fmt: skip
TARGET = HttpTarget("https://hooks.example.com/x", secret_ref="main", headers=(("X-Team", "blue"),))
STATE = DeliveryState((TARGET,), attempt=2)
USERS: Headers = [
    ("content-type", b"application/json"),
    ("traceparent", b"00-ab-cd-01"),
    ("ce_type", b"order.paid"),
    ("ce_id", b"1"),
    ("Host", b"evil"),
    ("webhook-id", b"forged"),
    ("belfry-schedule-id", b"x"),
    ("binary", b"\xff\x00"),
    ("injected", b"a\r\nb: c"),
    ("bad name", b"v"),
    ("nothing", None),
]
WORK = Work(b"demo/g", b"value", EVENT, USERS, STATE)
HEAD = framing.single_object("FiredEvent")
PLACES = Places("s", "l", "u", framing.single_object("ScheduleRequest"), b"")


def posted(secrets: dict[str, str] | None = None, **fields: Any) -> Post:
    given = Secrets(secrets or {"main": SECRET})
    return post_of(replace(WORK, **fields), TARGET, given, NOW)


def test_the_signature_is_that_of_the_standards_own_library() -> None:
    headers = dict(posted().headers)
    when = datetime.fromtimestamp(NOW // 1000, UTC)
    assert headers["webhook-signature"] == Webhook(SECRET).sign(EVENT.fire_id, when, '{"a":1}')
    assert headers["webhook-id"] == EVENT.fire_id
    assert headers["webhook-timestamp"] == str(NOW // 1000)


def test_any_bytes_are_signed_and_sent_verbatim() -> None:
    post = posted(event=replace(EVENT, payload=b"\x00\xff"))
    assert post.body == b"\x00\xff"
    key = Secrets({"main": SECRET}).keys("demo", "main")
    expected = signature(key, EVENT.fire_id, str(NOW // 1000), b"\x00\xff")
    assert dict(post.headers)["webhook-signature"] == expected
    assert posted(event=replace(EVENT, payload=None)).body == b""


def test_a_secret_that_is_changed_signs_beside_the_old_one() -> None:
    both = dict(posted({"main": f"{OTHER} {SECRET}"}).headers)["webhook-signature"].split(" ")
    assert len(both) == 2
    assert both[1] == dict(posted().headers)["webhook-signature"]


def test_headers_travel_where_http_can_carry_them() -> None:
    headers = dict(posted().headers)
    assert headers["content-type"] == "application/json"
    assert headers["traceparent"] == "00-ab-cd-01"
    assert (headers["ce-type"], headers["ce-id"]) == ("order.paid", "1")
    assert headers["x-team"] == "blue"
    assert not {"host", "binary", "injected", "bad name", "nothing"} & headers.keys()
    assert headers["belfry-schedule-id"] == "order/4711 %C3%A9"
    assert headers["belfry-attempt"] == "2"
    assert headers["belfry-event-type"] == "paid"
    assert dict(posted(headers=[]).headers)["content-type"] == "application/octet-stream"


def test_what_belfry_tells_of_a_fire_travels_and_nothing_else_of_its_names_does() -> None:
    told: Headers = [
        ("belfry-source", b"belfry.schedules/3/17"),
        ("belfry-backfill", b"job\xff"),
        ("belfry-x", b"1"),
    ]
    work = read([(HEADER, encode_state(STATE)), *told])
    assert work.headers == told[:2]
    headers = dict(posted(headers=work.headers).headers)
    assert headers["belfry-source"] == "belfry.schedules/3/17"
    assert headers["belfry-backfill"] == "job%FF"
    assert "belfry-x" not in headers
    assert not {"belfry-source", "belfry-backfill"} & dict(posted().headers).keys()


def test_a_secret_is_its_tenants() -> None:
    secrets = Secrets({"shop/main": SECRET, "all": SECRET})
    assert secrets.keys("shop", "shop/main")
    assert secrets.keys("demo", "all")
    for tenant, name in (("demo", "shop/main"), ("demo", "none")):
        with pytest.raises(NoSecret, match="BELFRY_WEBHOOK_SECRETS"):
            secrets.keys(tenant, name)


@pytest.mark.parametrize("bad", ["hunter2", "whsec_", "whsec_YWJj", "whsec_***", f"{SECRET} x"])
def test_a_secret_that_is_none_is_refused_and_not_shown(bad: str) -> None:
    with pytest.raises(ValueError, match="whsec_") as caught:
        Secrets({"main": bad})
    assert "hunter2" not in str(caught.value)


# -- records --------------------------------------------------------------------------------------


def read(headers: Headers, value: bytes | None = None) -> Work:
    value = HEAD + encode_fired(EVENT) if value is None else value
    return work_of(b"demo/g", value, headers, Decoder("FiredEvent", only=True))


def test_the_last_state_counts_since_a_user_may_send_a_header_of_its_name() -> None:
    forged = encode_state(DeliveryState((HttpTarget("https://evil.example.com/"),)))
    work = read([(HEADER, forged), ("a", b"b"), (HEADER, encode_state(STATE))])
    assert (work.state, work.event, work.headers) == (STATE, EVENT, [("a", b"b")])


def test_ports_of_one_machine_are_hosts_apart() -> None:
    targets = HttpTarget("http://10.0.0.1:8001/a"), HttpTarget("http://10.0.0.1:8002/a")
    state = DeliveryState(targets, "FIRST_AVAILABLE")
    assert replace(WORK, state=state).hosts == ["10.0.0.1:8001", "10.0.0.1:8002"]


def test_a_users_framing_header_is_not_taken_for_the_records_own() -> None:
    framed = ("__value_schema_id", b"\x01" + b"g" * 16)
    assert read([framed, (HEADER, encode_state(STATE))]).headers == [framed]


@pytest.mark.parametrize(
    ("headers", "value"),
    [([], None), ([(HEADER, b"{}")], None), ([(HEADER, encode_state(STATE))], b"no avro")],
)
def test_what_is_no_delivery_says_why(headers: Headers, value: bytes | None) -> None:
    with pytest.raises(NotADelivery):
        read(headers, value)


def test_a_retry_is_a_schedule_that_fires_the_same_record_again() -> None:
    work = read([("a", b"b"), (HEADER, encode_state(STATE))])
    (made,) = follow_up(work, Again(NOW + 500, STATE.next_attempt()), PLACES, NOW)
    assert made.topic == "s"
    assert made.value is not None
    request = catalogue.own_reader("ScheduleRequest").read(made.value[10:])
    assert (request["tenant"], request["at"]) == (RETRIES, NOW + 500)
    assert request["schedule_id"] == f"{EVENT.fire_id}/0/3"
    # Fired, it is the first record with another state; belfry's own headers come behind.
    fired: Headers = [(h["name"], h["value"]) for h in request["headers"]]
    again = work_of(
        request["key"],
        request["payload"],
        [*fired, ("belfry-fire-id", b"the retry's")],
        Decoder("FiredEvent", only=True),
    )
    assert again == replace(work, state=STATE.next_attempt())
    home = Homes(4).of(RETRIES, request["schedule_id"], 64)
    assert made.key is not None
    assert Homes(4).of(made.key.decode()) == home


def test_what_is_given_up_is_told_and_kept() -> None:
    end = Failed(Answer(End.FINAL, TARGET.url, "http_status", "404 Not Found"))
    told, letter = follow_up(WORK, end, PLACES, NOW)
    event = decode_lifecycle(told.value or b"")
    assert (event.outcome, event.code, event.reason) == ("FAILED", "http_status", "404 Not Found")
    assert (event.target, event.attempt, event.fire_id) == (TARGET.url, 2, EVENT.fire_id)
    assert (letter.topic, letter.key, letter.value) == ("u", WORK.key, WORK.value)
    headers = dict(letter.headers)
    assert headers["belfry-error-code"] == b"http_status"
    assert decode_state(headers[HEADER] or b"") == STATE


def test_delivered_is_told_where_it_is_asked_for() -> None:
    done = Delivered(Answer(End.DELIVERED, TARGET.url))
    first = replace(WORK, state=replace(STATE, attempt=1))
    assert follow_up(first, done, PLACES, NOW) == []
    (told,) = follow_up(replace(first, state=replace(first.state, tell=True)), done, PLACES, NOW)
    event = decode_lifecycle(told.value or b"")
    assert (event.outcome, event.attempt) == ("DELIVERED", 1)


def test_what_took_more_than_one_attempt_is_told_at_every_level() -> None:
    done = Delivered(Answer(End.DELIVERED, TARGET.url))
    assert (WORK.state.attempt, WORK.state.tell) == (2, False)
    (told,) = follow_up(WORK, done, PLACES, NOW)
    event = decode_lifecycle(told.value or b"")
    assert (event.outcome, event.attempt, event.target) == ("DELIVERED", 2, TARGET.url)


def test_the_arrival_of_what_is_awaited_is_its_acknowledgement() -> None:
    done = Delivered(Answer(End.DELIVERED, TARGET.url))
    awaited = replace(WORK, state=replace(STATE, attempt=1, acks=True))
    (made,) = follow_up(awaited, done, PLACES, NOW)
    assert (made.topic, made.key, made.headers) == ("s", b"demo", [])
    request = catalogue.own_reader("ScheduleRequest").read((made.value or b"")[10:])
    asked = (request["action"], request["tenant"], request["schedule_id"], request["fire_id"])
    assert asked == ("ACK", EVENT.tenant, EVENT.schedule_id, EVENT.fire_id)
    end = Failed(Answer(End.FINAL, TARGET.url, "http_status", "404 Not Found"))
    assert [each.topic for each in follow_up(awaited, end, PLACES, NOW)] == ["l", "u"]


def test_requests_are_signed_where_workers_have_a_secret() -> None:
    places = replace(PLACES, request_key=b"for requests", retry_key=b"for retries")
    awaited = replace(WORK, state=replace(STATE, acks=True))
    again = follow_up(WORK, Again(NOW, STATE.next_attempt()), places, NOW)
    acked = follow_up(awaited, Delivered(Answer(End.DELIVERED, TARGET.url)), places, NOW)
    made = ((again[0], RETRIES, b"for retries"), (acked[-1], "demo", b"for requests"))
    for record, tenant, key in made:
        assert proves((key,), tenant, record.key, record.value, record.headers)


def test_what_is_too_large_to_be_tried_again_is_given_up() -> None:
    large = replace(WORK, value=b"x" * 1_000_000)
    told, letter = follow_up(large, Again(NOW, STATE), PLACES, NOW)
    assert decode_lifecycle(told.value or b"").code == "too_large"
    assert letter.topic == "u"
