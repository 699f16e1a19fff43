"""A name that no body has is refused with the nearest one that it has, at every depth."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from belfry.api.json.bodies import DefinitionBody, ScheduleBody
from belfry.api.json.parsing import read_json
from belfry.api.problems import Problem
from belfry.api.routes.tenants import PolicyBody

WHOLE: dict[str, Any] = {"schedule_id": "a", "delay_ms": 1}


@pytest.mark.parametrize(
    ("kind", "body", "where", "given", "nearest"),
    [
        (ScheduleBody, {**WHOLE, "paylod_text": "x"}, "paylod_text", "paylod_text", "payload_text"),
        (ScheduleBody, {**WHOLE, "request-id": "r"}, "request-id", "request-id", "request_id"),
        (DefinitionBody, {"at": 1, "Timezone": "UTC"}, "Timezone", "Timezone", "timezone"),
        (
            ScheduleBody,
            {**WHOLE, "headers": [{"name": "h"}, {"name": "h", "value_txt": "x"}]},
            "headers.1.value_txt",
            "value_txt",
            "value_text",
        ),
        (
            ScheduleBody,
            {**WHOLE, "http_targets": [{"url": "http://h", "timout_ms": 1}]},
            "http_targets.0.timout_ms",
            "timout_ms",
            "timeout_ms",
        ),
        (
            ScheduleBody,
            {**WHOLE, "http_targets": [{"url": "http://h", "headers": [{"nam": "x"}]}]},
            "http_targets.0.headers.0.nam",
            "nam",
            "name",
        ),
        (PolicyBody, {"max_pendin": 1}, "max_pendin", "max_pendin", "max_pending"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    kind: type[BaseModel], body: dict[str, Any], where: str, given: str, nearest: str
) -> None:
    with pytest.raises(Problem) as refused:
        read_json(orjson.dumps(body), kind)
    (first, *_) = [each for each in refused.value.more["errors"] if each["where"] == where]
    assert first["message"].startswith(f"unknown field {given!r}; did you mean {nearest}? Known ")
    assert f"did you mean {nearest}?" in str(refused.value.detail)


def test_a_name_that_is_near_to_none_is_refused_with_all() -> None:
    with pytest.raises(Problem) as refused:
        read_json(orjson.dumps({**WHOLE, "q" * 9_000: 1}), ScheduleBody)
    assert len(str(refused.value.detail)) < 1_500
    assert all(name in str(refused.value.detail) for name in ScheduleBody.model_fields)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("18446744073709551616", "64 bits"),
        ("-9223372036854775809", "64 bits"),
        ("NaN", "not a number"),
        ("-Infinity", "not a number"),
        ("1e400", "not a number"),
        ("9" * 5_000, "fewer digits"),
    ],
)
@pytest.mark.parametrize("place", ["%s", '{"a":[null,%s]}'])
def test_a_number_that_would_arrive_as_another_is_refused(
    number: str, says: str, place: str
) -> None:
    raw = '{"schedule_id":"a","delay_ms":1,"payload_json":%s}' % (place % number)
    with pytest.raises(Problem) as refused:
        read_json(raw.encode(), ScheduleBody)
    assert refused.value.status == 422
    assert says in str(refused.value.detail)
    (first,) = refused.value.more["errors"]
    assert first["where"] == ("body" if "digits" in says else "payload_json")


@pytest.mark.parametrize("value", ["18446744073709551615", "-9223372036854775808", "1e308", "null"])
def test_the_largest_numbers_are_sent_as_they_are(value: str) -> None:
    raw = f'{{"schedule_id":"a","delay_ms":1,"payload_json":[{value}]}}'
    assert orjson.loads(read_json(raw.encode(), ScheduleBody).fields()["payload"]) == [
        orjson.loads(value)
    ]


@pytest.mark.parametrize("name", ["delay_ms", "max_fires", "at", "interval_ms"])
def test_a_number_of_thousands_of_digits_is_the_callers_fault(name: str) -> None:
    for value in ("9" * 5_000, '"' + "9" * 5_000 + '"', "9" * 30):
        with pytest.raises(Problem) as refused:
            read_json(f'{{"schedule_id":"a","{name}":{value}}}'.encode(), ScheduleBody)
        assert refused.value.status == 422
