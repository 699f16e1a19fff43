"""`docs/asyncapi.json`: belfry's topics as an AsyncAPI 3.1 document, for people and generators.

It is made from the same table as the topics (`topics`) and from the schemas themselves, so it
cannot differ from them.  ``python -m belfry.process.asyncapi > docs/asyncapi.json`` writes it
(`make docs`); a test compares, and validates it by AsyncAPI's own JSON schema.

This module has channels and operations: the topics, and their writers. `asyncapi_messages.py` has
the records in the topics.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import orjson

from belfry.kafka.topics import wanted_topics
from belfry.process.asyncapi_messages import BINDING, messages
from belfry.settings import SharedSettings
from belfry.settings.checks import HOUR_MS

REPLICATION_OF: Final = 3


class Channel(NamedTuple):
    """The purpose of a topic, whether users write to it, and its messages."""

    title: str
    description: str
    users_send: bool
    messages: tuple[str, ...]


CHANNELS: Final = {
    "schedules": Channel(
        "Requests",
        "Events to send, and their instants. Key = tenant keeps the order of a tenant's requests.",
        users_send=True,
        messages=("ScheduleRequest", "HeaderRequest"),
    ),
    "lifecycle": Channel(
        "Verdicts",
        "Outcomes of requests, occurrences and deliveries.",
        users_send=False,
        messages=("LifecycleEvent",),
    ),
    "rejected": Channel(
        "Rejected requests",
        "Requests as they were received, with headers that say why they were refused.",
        users_send=False,
        messages=("RejectedRequest",),
    ),
    "tenants": Channel(
        "Policies",
        "One policy for each tenant, under the tenant's name; a null value removes it.",
        users_send=True,
        messages=("TenantPolicy",),
    ),
    "deliveries": Channel(
        "HTTP deliveries",
        "Fired events that go to HTTP targets.",
        users_send=False,
        messages=("FiredEvent",),
    ),
    "undelivered": Channel(
        "Undelivered events",
        "Deliveries that were given up, as they lay in the topic of deliveries, with headers that"
        " say why.",
        users_send=False,
        messages=("FiredEvent",),
    ),
    "audit": Channel(
        "Audit log",
        "Changes and refused attempts: the caller, the change that it asked for, the result. Key ="
        " tenant.",
        users_send=False,
        messages=("AuditEvent",),
    ),
    "metering": Channel(
        "Usage of tenants",
        "Usage of each tenant in each period, if it is counted (BELFRY_METERING_INTERVAL_MS)."
        " Records of a tenant and period add up. Key = tenant.",
        users_send=False,
        messages=("Usage",),
    ),
}
FIRED: Final = Channel(
    "Fired events of a tenant",
    "The user's own key, value and headers (PAYLOAD), or a FiredEvent around them (ENVELOPE)."
    " Read it with isolation.level=read_committed.",
    users_send=False,
    messages=("FiredPayload", "FiredEvent"),
)

FIRED_SHARED: Final = Channel(
    "Fired events of tenants that share an output",
    "The same of all tenants whose policy says `output` SHARED, with the tenant and a slash before"
    " the key; the header belfry-schedule-tenant says whose an event is.",
    users_send=False,
    messages=("FiredPayload", "FiredEvent"),
)

LETTERS: Final = Channel(
    "Dead letters of a tenant",
    "Records that were put back (belfry-retry) and are refused, as in the topic of rejected"
    " requests, if this topic exists. `retry-attempt` counts the last failure as well.",
    users_send=False,
    messages=("RejectedRequest",),
)

_OF_TENANTS: Final = {"fired": FIRED, "fired_shared": FIRED_SHARED, "dead_letters": LETTERS}


def document() -> dict[str, Any]:
    """The document as plain values."""
    settings = SharedSettings.model_construct(metering_interval_ms=HOUR_MS)
    specs = {spec.name: spec for spec in wanted_topics(settings, REPLICATION_OF)}
    channels = {
        short: _channel(settings.topic(short), channel, _topic(specs[settings.topic(short)]))
        for short, channel in CHANNELS.items()
    }
    fired = _channel(settings.topic("fired.{tenant}"), FIRED, {})
    shared = _channel(settings.topic("fired"), FIRED_SHARED, {})
    letters = _channel(settings.topic("dead-letters.{tenant}"), LETTERS, {})
    for each in (fired, letters):
        each["parameters"] = {"tenant": {"description": "Name of the tenant."}}
    return {
        "asyncapi": "3.1.0",
        "info": {
            "title": "belfry",
            "version": version("belfry-scheduler"),
            "description": "A Kafka-native, distributed event scheduler.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/octet-stream",
        "servers": {
            "kafka": {
                "host": "localhost:9092",
                "protocol": "kafka",
                "bindings": {
                    "kafka": {
                        "schemaRegistryUrl": "http://localhost:8081/apis/ccompat/v7",
                        "schemaRegistryVendor": "apicurio",
                        "bindingVersion": BINDING,
                    }
                },
            }
        },
        "channels": {**channels, "fired": fired, "fired_shared": shared, "dead_letters": letters},
        "operations": _operations(),
        "components": {"messages": messages()},
    }


def _channel(address: str, channel: Channel, topic: dict[str, Any]) -> dict[str, Any]:
    return {
        "address": address,
        "title": channel.title,
        "description": channel.description,
        "messages": {name: _link("components/messages", name) for name in channel.messages},
        "bindings": {"kafka": {**topic, "bindingVersion": BINDING}},
    }


def _topic(spec: Any) -> dict[str, Any]:
    known = ("cleanup.policy", "retention.ms", "delete.retention.ms", "max.message.bytes")
    config: dict[str, Any] = {
        name: [value] if name == "cleanup.policy" else int(value)
        for name, value in spec.config.items()
        if name in known
    }
    return {
        "partitions": spec.partitions,
        "replicas": spec.replication,
        "topicConfiguration": config,
    }


def _operations() -> dict[str, Any]:
    """From belfry's side: it receives what users send, and sends what they receive."""
    return {
        short: {
            "action": "receive" if channel.users_send else "send",
            "channel": _link("channels", short),
            "title": channel.title,
        }
        for short, channel in {**CHANNELS, **_OF_TENANTS}.items()
    }


def _link(where: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/{where}/{name}"}


def text() -> str:
    """The document as YAML, in its JSON subset: readable by every tool of either kind."""
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
