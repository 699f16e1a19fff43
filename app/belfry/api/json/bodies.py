"""Bodies of callers: JSON in the names of `ScheduleRequest`, strictly read.

Bytes come as ``…_text``, ``…_base64`` or, for payloads, ``payload_json``; instants as RFC 3339 with
an offset or as epoch milliseconds. Which kind of schedule it is may be left out: one of `at`,
`delay_ms`, `interval_ms` … says it. An unknown name is refused, never ignored.

    {"schedule_id": "order/4711", "delay_ms": 300000, "payload_json": {"state": "unpaid"}}
    ─► fields(): {"kind": "AFTER", "delay_ms": 300000, "payload": b'{"state":"unpaid"}', …}

The fields are those of the table in `schedules/fields.py`, and a test sees that none is missing.
This module checks form: types, lengths, one way to say a thing. The rules of `schedules/` judge the
meaning, as for any other request; the routes ask them before they write.

The docstrings of models, and the descriptions of their fields, are the text of the OpenAPI
document.
"""

from __future__ import annotations

from base64 import b64decode
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

from belfry.api.json.parsing import json_bytes
from belfry.api.json.triggers import TriggerBody
from belfry.api.json.values import LONGEST_TEXT, Base64, Milliseconds, RequestId, Strict, Text
from belfry.api.problems import Problem
from belfry.schedules.field import Form
from belfry.schedules.fields import EMPTY, FIELDS, OF_ONE_REQUEST, named
from belfry.schedules.fire_checks import MOST_AT_ONCE
from belfry.schedules.targets import MAX_ATTEMPTS, MAX_HEADERS, MAX_TARGETS, MAX_TIMEOUT_MS, MAX_URL
from belfry.schedules.triggers.levels import HIGHEST, LOWEST


class HeaderBody(Strict):
    """One header of the event; neither value gives a null value."""

    name: Annotated[str, StringConstraints(max_length=1024)]
    value_text: str | None = None
    value_base64: Base64 | None = None

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        """Refuse a value that is given in two ways."""
        _at_most_one(self, "value_text", "value_base64")
        return self

    def field(self) -> dict[str, Any]:
        """The header as Avro has it."""
        return {"name": self.name, "value": _bytes(self.value_text, self.value_base64)}


class TargetHeaderBody(Strict):
    """One HTTP header of a target."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    value: Annotated[str, StringConstraints(max_length=4096)] = ""


class TargetBody(Strict):
    """Where the event is posted to."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL)]
    timeout_ms: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS)] = 10_000
    max_attempts: Annotated[int, Field(ge=0, le=MAX_ATTEMPTS)] = Field(
        0, description="0 takes the tenant's."
    )
    secret_ref: Text | None = Field(None, description="Name of the secret that signs.")
    headers: Annotated[list[TargetHeaderBody], Field(max_length=MAX_HEADERS)] = Field(
        default_factory=list
    )
    strategy: Literal["ALL", "FIRST_AVAILABLE", "ROUND_ROBIN"] = "ALL"


# Fields that a body has in the form in which Avro has them.
_OTHERWISE: Final = named(Form.BYTES, Form.HEADERS, Form.TARGETS, Form.STANDING)
SAME_FIELDS: Final = tuple(
    name
    for name in FIELDS
    if name not in _OTHERWISE | OF_ONE_REQUEST - {"expected_version", "request_id", "reason"}
    and name not in {"tenant", "schedule_id", "kind"}
)


OverlapPolicy = Literal[
    "ALLOW", "SKIP", "QUEUE_ONE", "QUEUE_ALL", "CANCEL_OTHER", "TERMINATE_OTHER"
]


class DefinitionBody(TriggerBody):
    """What to send, and when."""

    misfire: Literal["FIRE_ONCE", "FIRE_ALL", "SKIP"] | None = None
    max_lateness_ms: Milliseconds | None = None
    overlap: OverlapPolicy | None = None
    serial: bool = False
    concurrency: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] | None = None
    ack_timeout_ms: Milliseconds | None = None
    priority: Annotated[int, Field(ge=LOWEST, le=HIGHEST)] | None = Field(
        None, description=FIELDS["priority"].doc
    )
    event_type: Text | None = None
    group: Text | None = Field(None, description="Events of one group keep their due order.")
    key_text: str | None = Field(None, description="Key of the event; else the group, else the id.")
    key_base64: Base64 | None = None
    payload_text: str | None = None
    payload_base64: Base64 | None = None
    payload_json: JsonValue = Field(None, description="Sent as JSON without spaces.")
    headers: Annotated[list[HeaderBody], Field(max_length=256)] = Field(default_factory=list)
    http_targets: Annotated[list[TargetBody], Field(max_length=MAX_TARGETS)] = Field(
        default_factory=list, description="Where the event is posted to besides the topic."
    )
    throttle_ms: Milliseconds | None = Field(None, description=FIELDS["throttle_ms"].doc)
    expected_version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    request_id: RequestId = None
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None

    @field_validator("payload_json")
    @classmethod
    def _can_be_sent(cls, given: JsonValue) -> JsonValue:
        """Refuse JSON that would arrive as something else, such as a number beyond 64 bits."""
        json_bytes(given)
        return given

    @model_validator(mode="after")
    def _one_form_each(self) -> Self:
        """Refuse a key or a payload that is given in two ways."""
        _at_most_one(self, "key_text", "key_base64")
        _at_most_one(self, "payload_text", "payload_base64", "payload_json")
        return self

    def fields(self) -> dict[str, Any]:
        """The request as Avro has it, without tenant, schedule and action."""
        return {
            **EMPTY,
            **{name: getattr(self, name) for name in SAME_FIELDS},
            "kind": self.kind_given(),
            "key": _bytes(self.key_text, self.key_base64),
            "payload": self._payload(),
            "headers": [header.field() for header in self.headers],
            "http_targets": [target.model_dump() for target in self.http_targets],
        }

    def _payload(self) -> bytes | None:
        """The bytes of the event's value, None for a null value; JSON null is the text `null`."""
        if "payload_json" in self.model_fields_set:
            return json_bytes(self.payload_json)
        return _bytes(self.payload_text, self.payload_base64)


class ReplacementBody(DefinitionBody):
    """A schedule that the address names; what names it here has to say the same."""

    tenant: str | None = Field(None, description="As the address has it, or left out.")
    schedule_id: str | None = Field(None, description="As the address has it, or left out.")

    def must_be(self, tenant: str, schedule_id: str) -> None:
        """Raise `Problem` where the body names another schedule than the address does."""
        named = (("tenant", self.tenant, tenant), ("schedule_id", self.schedule_id, schedule_id))
        for name, given, meant in named:
            if given is not None and given != meant:
                detail = (
                    f"{name}: the body says {given[:LONGEST_TEXT]!r}, and the address {meant!r}:"
                    " leave it out of the body, or ask under the other address."
                )
                raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "bad_body")


class ScheduleBody(DefinitionBody):
    """A schedule to create."""

    schedule_id: str = Field(
        description="1-255 bytes of UTF-8 without control characters, such as `order/4711`.",
        min_length=1,
        max_length=LONGEST_TEXT,
        json_schema_extra={"pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"},
    )


def _bytes(text: str | None, base64: str | None) -> bytes | None:
    """Bytes of a text or of base64; None without either."""
    if base64 is not None:
        return b64decode(base64)
    return None if text is None else text.encode()


def _at_most_one(body: BaseModel, *names: str) -> None:
    """Raise ValueError where more than one of these was given, with null or not."""
    given = [name for name in names if name in body.model_fields_set]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} say the same thing in two ways: keep one")
