"""What every kind of trigger promises: run for each kind of the registry, on its own examples.

A new kind needs no test here.  What it computes is its own affair, and has tests of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from belfry.api.json.bodies import ScheduleBody
from belfry.cli.program import program
from belfry.client.requests import request as client_request
from belfry.schedules.checks import RequestChecks
from belfry.schedules.field import Field, Form
from belfry.schedules.fields import EMPTY, FIELDS
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.rule import decode_rule, encode_rule, rule_of
from belfry.schedules.triggers import Trigger, trigger_by, trigger_of
from belfry.schedules.triggers.kind import OneShot, Recurring, TriggerKind
from belfry.schedules.triggers.registry import BY_CODE, KINDS
from belfry.schedules.triggers.zones import Zone, zone
from belfry.wire import catalogue, headers
from belfry.wire.requests import RequestReader

NOW: Final = 1_800_000_000_000
DAY: Final = 86_400_000
CASES: Final = [
    (kind, {**EMPTY, "tenant": "demo", "schedule_id": "a", "kind": kind.name, **example})
    for kind in KINDS.values()
    for example in kind.examples
]
EVERY: Final = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
CASE: Final = pytest.mark.parametrize(
    ("kind", "request_"),
    CASES,
    ids=[f"{kind.name} {asked[kind.field.name]}" for kind, asked in CASES],
)
RECURS: Final = pytest.mark.parametrize(
    ("kind", "request_"),
    [case for case in CASES if case[0].recurs],
    ids=[f"{kind.name} {asked[kind.field.name]}" for kind, asked in CASES if kind.recurs],
)
NAMES: Final = ("--tenant", "demo", "--id", "a")
# Codes that lie in stores; never given to another kind.
FROZEN: Final = {"AT": 0, "AFTER": 1, "EVERY": 2, "CRON": 3}


def walked(trigger: Trigger, accepted_ms: int, most: int = 60) -> list[int]:
    found: list[int] = []
    due_ms = trigger.first_ms(accepted_ms)
    while due_ms is not None and len(found) < most:
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    return found


def given_of(asked: Any) -> list[Field]:
    """What a request says of when, besides its kind."""
    left_out = {"tenant", "schedule_id", "kind"}
    return [
        field
        for name, field in FIELDS.items()
        if name not in left_out and asked[name] != field.default
    ]


def trigger_for(request: Request) -> Trigger:
    return trigger_by(rule_of(request))


@EVERY
def test_a_kind_is_one_of_the_two_sorts_and_says_so(kind: TriggerKind) -> None:
    assert isinstance(kind, OneShot if not kind.recurs else Recurring)
    assert kind.examples, f"{kind.name} gives no examples"
    assert FIELDS[kind.field.name] is kind.field
    assert BY_CODE[kind.code] is kind


def test_the_codes_are_those_of_every_release() -> None:
    assert FROZEN.items() <= {name: kind.code for name, kind in KINDS.items()}.items()
    assert sorted(BY_CODE) == list(range(len(KINDS))), "a code is left out"


@EVERY
def test_its_field_is_needed_and_the_reason_names_it(kind: TriggerKind) -> None:
    asked: Any = {**CASES[0][1], "kind": kind.name, **kind.examples[0], kind.field.name: None}
    found = RequestChecks().problem(asked, NOW)
    assert found is not None
    assert found.code == "no_instant"
    assert kind.field.name in found.reason


@CASE
def test_its_examples_are_good(kind: TriggerKind, request_: Request) -> None:
    assert RequestChecks().problem(request_, NOW) is None


@CASE
def test_a_rule_at_rest_is_the_same_rule(kind: TriggerKind, request_: Request) -> None:
    rule = rule_of(request_)
    encoded = encode_rule(rule)
    assert bool(encoded) == (kind.recurs or kind.depends)
    if encoded:
        assert encoded[1] == kind.code
        assert decode_rule(encoded) == rule
    assert walked(trigger_of(encoded), NOW, 5) == walked(trigger_by(rule), NOW, 5)


@CASE
def test_a_preview_has_words_and_the_instants(kind: TriggerKind, request_: Request) -> None:
    found = preview(request_, NOW, 5)
    assert isinstance(found, Preview)
    assert found.words
    shown = [each.scheduled_ms for each in found.occurrences]
    if isinstance(kind, OneShot):
        assert shown == [kind.first_ms(request_, NOW)]
    else:
        assert shown == walked(trigger_for(request_), NOW, 5)


@CASE
def test_avro_brings_it_whole(kind: TriggerKind, request_: Request) -> None:
    asked: Any = request_
    value = b"\xc3\x01" + catalogue.fingerprint("ScheduleRequest")
    value += catalogue.encode("ScheduleRequest", asked)
    assert RequestReader().read_whole((0, 0, None, value, [])) == asked


@CASE
def test_its_headers_say_the_same(kind: TriggerKind, request_: Request) -> None:
    asked: Any = request_
    given: Any = [
        (field.header, str(asked[name]).encode())
        for name, field in FIELDS.items()
        if field.header and asked[name] is not None
    ]
    found: Any = headers.read_headers((0, 0, b"key", b"value", given))
    assert not isinstance(found, Rejection), found
    told = {name for name, field in FIELDS.items() if field.header} | {"kind"}
    assert {name: found[name] for name in told} == {name: asked[name] for name in told}


@CASE
def test_its_arguments_say_the_same(kind: TriggerKind, request_: Request) -> None:
    asked: Any = request_
    given = {field.argument: asked[field.name] for field in given_of(asked) if field.argument}
    found = client_request("demo", "a", "UPSERT", given)
    assert found == asked


@CASE
def test_a_body_of_http_says_the_same(kind: TriggerKind, request_: Request) -> None:
    asked: Any = request_
    given = {field.name: asked[field.name] for field in given_of(asked)}
    body = ScheduleBody.model_validate({"schedule_id": "a", **given})
    assert {**body.fields(), "tenant": "demo", "schedule_id": "a"} == asked


def test_a_body_of_http_takes_a_recurrence_of_many_lines() -> None:
    """As long as its own check allows, so it may be longer than a name."""
    dates = ",".join(f"2040{month:02}{day:02}T090000" for month in (1, 3) for day in range(1, 30))
    text = f"DTSTART:20400101T090000 RRULE:FREQ=DAILY EXDATE:{dates}"
    assert len(text) > 900
    body = ScheduleBody.model_validate({"schedule_id": "a", "rrule": text})
    assert body.fields()["rrule"] == text


@CASE
def test_its_options_ask_for_a_preview(kind: TriggerKind, request_: Request) -> None:
    asked: Any = request_
    options = [
        word
        for field in given_of(asked)
        for word in (field.flag, str(asked[field.name]) + "ms" * (field.form is Form.DURATION))
    ]
    found = CliRunner().invoke(program(), ["schedule", "preview", *options, *NAMES])
    assert found.exit_code == 0, found.output
    words = kind.words(request_)
    assert words.split(",")[0] in found.output.replace("\n", " ")


@RECURS
def test_instants_increase_and_stay_within_the_bounds(kind: TriggerKind, request_: Request) -> None:
    found = walked(trigger_for(request_), NOW)
    assert found
    assert all(before < after for before, after in pairwise(found))
    start_at, end_at = request_["start_at"], request_["end_at"]
    assert all(each >= (start_at or NOW) for each in found)
    assert end_at is None or found[-1] <= end_at


@RECURS
def test_the_first_instant_does_not_depend_on_when_it_was_asked_for(
    kind: TriggerKind, request_: Request
) -> None:
    """Two owners agree: an instant follows from the rule and the acceptance alone."""
    trigger = trigger_for(request_)
    found = walked(trigger, NOW)
    anchored = kind.zoned or request_["start_at"] is not None
    if anchored:
        assert trigger.first_ms(found[3]) in (found[3], found[4])
    assert trigger_for(request_).first_ms(NOW) == found[0]


@RECURS
@pytest.mark.parametrize("skip", [0, 1, 2, 7, 40])
def test_what_is_passed_over_is_counted(kind: TriggerKind, request_: Request, skip: int) -> None:
    trigger = trigger_for(request_)
    found = walked(trigger, NOW)
    for place in range(0, len(found) - skip - 1, 5):
        until_ms = found[place + skip + 1] - 1
        expected = (found[place + skip], skip)
        assert trigger.latest_ms(found[place], until_ms) == expected


@RECURS
def test_the_one_before_is_the_one_that_it_follows(kind: TriggerKind, request_: Request) -> None:
    trigger = trigger_for(request_)
    for before, after in pairwise(walked(trigger, NOW, 10)):
        assert trigger.before_ms(after, NOW - DAY) == before


@RECURS
def test_it_holds_by_the_same_zones(kind: TriggerKind, request_: Request) -> None:
    trigger = trigger_for(request_)
    assert all(trigger.holds(each) for each in walked(trigger, NOW, 20))


@RECURS
def test_bounds_that_end_it_are_no_part_of_its_rhythm(kind: TriggerKind, request_: Request) -> None:
    ends: Mapping[str, Any] = {**request_, "max_fires": 3, "misfire": "SKIP"}
    other: Any = ends
    assert trigger_for(request_).same_cadence(trigger_for(other))
    last = walked(trigger_for(request_), NOW, 4)[3]
    ended: Any = {**request_, "end_at": last}
    assert trigger_for(request_).same_cadence(trigger_for(ended))
    assert walked(trigger_for(ended), NOW)[-1] == last


@RECURS
def test_no_two_kinds_have_the_same_rhythm(kind: TriggerKind, request_: Request) -> None:
    others: Any = [asked for other, asked in CASES if other.recurs and other is not kind]
    assert not any(trigger_for(request_).same_cadence(trigger_for(other)) for other in others)


@RECURS
def test_a_zone_matters_to_those_that_are_read_in_one(
    kind: TriggerKind, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Any = {**request_, "timezone": "Nowhere/Atall"}
    found = RequestChecks().problem(asked, NOW)
    zoned = kind.zoned or request_["except_cron"] is not None
    assert (found is not None and found.code == "bad_timezone") is zoned
    looked_at: list[int] = []
    at = Zone.at

    def counted(place: Zone, second: int) -> Any:
        looked_at.append(second)
        return at(place, second)

    monkeypatch.setattr(Zone, "at", counted)
    zone.cache_clear()
    walked(trigger_for(request_), NOW - 1, 3)
    if not zoned:
        assert not looked_at, f"{kind.name} is read in a zone: say so, or it is not derived anew"


@EVERY
def test_the_form_of_its_field_is_one_that_every_door_reads(kind: TriggerKind) -> None:
    assert kind.field.form in (Form.INSTANT, Form.DURATION, Form.TEXT)
    assert kind.field.flag
    assert kind.field.argument
    assert kind.field.metavar
    assert kind.field.help.endswith((".", "]"))
