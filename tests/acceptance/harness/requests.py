"""Requests and policies as a stranger would write them: Avro single-object bytes from the published
schemas."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

SCHEMAS: Final = Path(__file__).parents[3] / "schemas"
REQUEST_TEXT: Final = (SCHEMAS / "io.belfry.ScheduleRequest.avsc").read_text("utf-8")
POLICY_TEXT: Final = (SCHEMAS / "io.belfry.TenantPolicy.avsc").read_text("utf-8")

_REQUEST: Final = fastavro.parse_schema(json.loads(REQUEST_TEXT))
_POLICY: Final = fastavro.parse_schema(json.loads(POLICY_TEXT))


def _head(text: str) -> bytes:
    crc = fingerprint(to_parsing_canonical_form(json.loads(text)), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(crc)


_REQUEST_HEAD: Final = _head(REQUEST_TEXT)
_POLICY_HEAD: Final = _head(POLICY_TEXT)


def request_body(tenant: str, schedule_id: str, **fields: Any) -> bytes:
    """Body of a ScheduleRequest, without a frame; instants in epoch milliseconds."""
    out = BytesIO()
    record = {"tenant": tenant, "schedule_id": schedule_id, **fields}
    fastavro.schemaless_writer(out, _REQUEST, record)
    return out.getvalue()


def request(tenant: str, schedule_id: str, **fields: Any) -> bytes:
    """A ScheduleRequest in single-object encoding, which needs no registry."""
    return _REQUEST_HEAD + request_body(tenant, schedule_id, **fields)


def policy(tenant: str, **fields: Any) -> bytes:
    """A TenantPolicy in single-object encoding."""
    out = BytesIO()
    fastavro.schemaless_writer(out, _POLICY, {"tenant": tenant, **fields})
    return _POLICY_HEAD + out.getvalue()
