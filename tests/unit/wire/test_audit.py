"""Audit events: what callers say is cut, what is written can be read."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import pytest

from belfry.wire import catalogue
from belfry.wire.audit import AuditEvent, Object, PolicyChange, bounded, decode_audit, encode_audit
from belfry.wire.catalogue import MalformedError, RecordReader

PLAIN = AuditEvent(at=1_800_000_000_000, action="schedule.put")
RICH = AuditEvent(
    at=1_800_000_000_000,
    action="policy.set",
    result="DONE",
    via="topic",
    caller="ann",
    role="admin",
    source_address="192.0.2.1",
    tenant="demo",
    object="a/b",
    status=200,
    outcome="ACCEPTED",
    code="ok",
    request_id="r",
    trace_id="t",
    worker="w",
    count=3,
    objects=(Object("a", "ACCEPTED"), Object("b", None, "bad_fields")),
    changes=(PolicyChange("paused", None, "true"), PolicyChange("spread", "1", "2")),
    source_topic="belfry.tenants",
    source_partition=2,
    source_offset=40,
    reason="because",
)
TEXTS = [each.name for each in fields(AuditEvent) if type(getattr(RICH, each.name)) is str]


@pytest.mark.parametrize("event", [PLAIN, RICH])
def test_an_event_is_written_as_its_schema_says_and_read_back(event: AuditEvent) -> None:
    assert encode_audit(event) == catalogue.encode("AuditEvent", asdict(event))
    assert decode_audit(encode_audit(event)) == event
    with pytest.raises(MalformedError):
        decode_audit(encode_audit(event)[:-1])


def test_an_event_of_another_release_is_read_by_its_schema() -> None:
    ours = catalogue.schema("AuditEvent")
    more = {**ours, "fields": [*ours["fields"], {"name": "more", "type": "string"}]}
    body = encode_audit(RICH) + b"\2x"
    assert decode_audit(body, RecordReader("AuditEvent", more)) == RICH


def test_what_fits_stays_as_it_is() -> None:
    for event in (PLAIN, RICH, replace(RICH, reason="r" * 300), replace(RICH, caller="é" * 300)):
        assert bounded(event) == event
    assert bounded(PLAIN) is PLAIN


@pytest.mark.parametrize("name", sorted({*TEXTS} - {"result", "via"}))
def test_every_text_of_a_caller_is_cut(name: str) -> None:
    def told(text: str) -> AuditEvent:
        given: dict[str, Any] = {name: text}
        return replace(PLAIN, **given)

    assert bounded(told("x" * 301)) == told("x" * 299 + "…")
    assert bounded(told("\ud800")) == told("?")


def test_names_and_values_of_many_are_cut_and_nothing_else_of_them() -> None:
    objects = (Object("o" * 301, "ACCEPTED", "code"), Object("\ud800"))
    changes = (PolicyChange("a", "b" * 4_001, "c" * 4_000), PolicyChange("d", None, "\ud800"))
    assert bounded(replace(PLAIN, objects=objects)) == replace(
        PLAIN, objects=(Object("o" * 299 + "…", "ACCEPTED", "code"), Object("?"))
    )
    assert bounded(replace(PLAIN, changes=changes)) == replace(
        PLAIN,
        changes=(PolicyChange("a", "b" * 3_999 + "…", "c" * 4_000), PolicyChange("d", None, "?")),
    )
