"""Requests as a stranger would write them: Avro single-object bytes from the published schema."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

SCHEMAS: Final = Path(__file__).parents[3] / "schemas"
REQUEST_TEXT: Final = (SCHEMAS / "io.belfry.ScheduleRequest.avsc").read_text("utf-8")

_SCHEMA: Final = fastavro.parse_schema(json.loads(REQUEST_TEXT))
_CRC: Final = fingerprint(to_parsing_canonical_form(json.loads(REQUEST_TEXT)), "CRC-64-AVRO")
_HEAD: Final = b"\xc3\x01" + bytes.fromhex(_CRC)


def request_body(tenant: str, schedule_id: str, **fields: Any) -> bytes:
    """Body of a ScheduleRequest, without a frame; instants in epoch milliseconds."""
    out = BytesIO()
    record = {"tenant": tenant, "schedule_id": schedule_id, **fields}
    fastavro.schemaless_writer(out, _SCHEMA, record)
    return out.getvalue()


def request(tenant: str, schedule_id: str, **fields: Any) -> bytes:
    """A ScheduleRequest in single-object encoding, which needs no registry."""
    return _HEAD + request_body(tenant, schedule_id, **fields)
