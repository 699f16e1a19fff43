"""The records in belfry's topics, as messages of an AsyncAPI document.

    in Avro            every schema of the catalogue: its JSON, and the place of its id
    HeaderRequest      a request in headers; the record itself is the event
    FiredPayload       an event as its user gave it, with belfry's headers
    RejectedRequest    a request as received, with headers that say why
    Usage              JSON, which programs for bills read without a registry

Headers of a request come from the table of a request's fields, with the header that puts a record
back beside them, and counts of usage from the format of its records. So a field that is added there
is in the document as well.
"""

from __future__ import annotations

from typing import Any, Final

from belfry.schedules.field import Form
from belfry.schedules.fields import FIELDS
from belfry.schedules.retry_rule import EXAMPLE
from belfry.schedules.retry_rule import HEADER as RETRY
from belfry.wire import catalogue
from belfry.wire.metering import COUNTS, FORMAT

# Versions of AsyncAPI's bindings to Kafka, and of its format of Avro schemas.
BINDING: Final = "0.5.0"
AVRO: Final = "application/vnd.apache.avro;version=1.9.0"
_TEXT_KEY: Final = {"type": "string"}

# How the value of a header is written, if it is not simply a text.
_WRITTEN: Final = {
    Form.INSTANT: " RFC 3339 with offset, or epoch milliseconds.",
    Form.DURATION: " Such as 5m or PT5M, or a number of milliseconds.",
    Form.FLAG: " true or false.",
    Form.TARGETS: " An address, or a JSON list of addresses and objects, as over HTTP.",
}
_REQUEST_HEADERS: Final = {
    field.header: field.doc + _WRITTEN.get(field.form, "")
    for field in FIELDS.values()
    if field.header
} | {
    RETRY: "Puts a record back that its consumer could not handle, with the headers that it came"
    f" with; how long it waits after each failure, such as {EXAMPLE}."
}
_FIRED_HEADERS: Final = {
    "belfry-fire-id": "The same for every attempt: deduplicate by it.",
    "belfry-schedule-id": "The schedule.",
    "belfry-scheduled-at": "Nominal instant, RFC 3339 in milliseconds.",
    "belfry-occurrence": "0, 1, 2 …; -1 for an extra one, by TRIGGER or a backfill.",
    "belfry-schedule-tenant": "The schedule's tenant.",
    "belfry-schedule-version": "Version of the schedule that fired.",
}
# On some of them.
_FURTHER_HEADERS: Final = {
    "belfry-schedule-group": "The schedule's group, if it has one.",
    "belfry-schedule-type": "The schedule's event type, if it has one.",
    "belfry-backfill": "On events of a backfill: the id of its job.",
    "belfry-source": "topic/partition/offset of the request, if the policy says so.",
    "belfry-redriven": "On an event that was sent again: name of the redrive, offset of the event.",
}

_INSTANT: Final = {"type": "string", "format": "date-time"}
_COUNTS_OF: Final = {
    "accepted": "Requests that brought something to keep.",
    "fired": "Events that fired.",
    "delivered": "Deliveries to targets that succeeded.",
    "held_byte_ms": "Bytes of schedules that waited, times the milliseconds for which they did.",
}
_USAGE: Final = {
    "type": "object",
    "required": ["v", "tenant", "from", "until", *COUNTS, "partition"],
    "properties": {
        "v": {"const": FORMAT, "description": "Another number if a field has another meaning."},
        "tenant": {"type": "string"},
        "from": _INSTANT,
        "until": _INSTANT,
        **{
            name: {"type": "integer", "minimum": 0, "description": _COUNTS_OF[name]}
            for name in COUNTS
        },
        "partition": {
            "type": ["integer", "null"],
            "description": "The partition that counted; null for deliveries of a dispatcher.",
        },
    },
}


def messages() -> dict[str, Any]:
    """All messages by name: those in Avro, and all others."""
    avro = {name: _avro(name) for name in sorted(catalogue.names())}
    return {
        **avro,
        "HeaderRequest": {
            "title": "Request in headers",
            "description": "The record's own key, value and other headers are the event.",
            "contentType": "application/octet-stream",
            "headers": {
                "type": "object",
                "anyOf": [{"required": ["belfry-tenant", "belfry-id"]}, {"required": [RETRY]}],
                "properties": {
                    name: {"type": "string", "description": text}
                    for name, text in _REQUEST_HEADERS.items()
                },
            },
            "bindings": {"kafka": {"bindingVersion": BINDING}},
        },
        "FiredPayload": {
            "title": "Fired event, as the user gave it",
            "contentType": "application/octet-stream",
            "headers": {
                "type": "object",
                "required": list(_FIRED_HEADERS),
                "properties": {
                    name: {"type": "string", "description": text}
                    for name, text in (_FIRED_HEADERS | _FURTHER_HEADERS).items()
                },
            },
            "bindings": {"kafka": {"bindingVersion": BINDING}},
        },
        "Usage": {
            "title": "Usage of a tenant in a period",
            "contentType": "application/json",
            "payload": _USAGE,
            "bindings": {"kafka": {"key": _TEXT_KEY, "bindingVersion": BINDING}},
        },
        "RejectedRequest": {
            "title": "Rejected request, as received",
            "contentType": "application/octet-stream",
            "headers": {
                "type": "object",
                "required": ["belfry-error-code"],
                "properties": {
                    f"belfry-error-{part}": {"type": "string"}
                    for part in ("code", "reason", "topic", "partition", "offset", "at", "tenant")
                },
            },
            "bindings": {"kafka": {"bindingVersion": BINDING}},
        },
    }


def _avro(name: str) -> dict[str, Any]:
    return {
        "title": name,
        "contentType": "application/vnd.apache.avro",
        "payload": {"schemaFormat": AVRO, "schema": catalogue.schema(name)},
        "bindings": {
            "kafka": {
                "key": _TEXT_KEY,
                "schemaIdLocation": "payload",
                "schemaIdPayloadEncoding": "confluent",
                "schemaLookupStrategy": "TopicIdStrategy",
                "bindingVersion": BINDING,
            }
        },
    }
