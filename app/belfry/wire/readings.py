"""How records of a writer's schema are read, or why they are not.

A value names the schema that wrote it by a *reference*: the id of a registry (an int), or a
fingerprint or a GUID (bytes).  What stands behind a reference is settled once and then kept:

    reference ─► writer's schema ─► safe to decode? ─► has tenant and id? ─► a *reading*
                                        │ no               │ no
                                        ▼                  ▼
                                    schema_unsafe      schema_not_a_request

A reading is what to decode with, or the refusal that each record of this reference gets.  Making
one costs milliseconds, since fastavro parses the schema and `bounds` measures it, so it is made in
the shell and once for all partitions; the hot path looks it up.

Where the writer's schema is ours, nothing has to be resolved, and most records are not even decoded
(`quick`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

from fastavro import parse_schema

from belfry.schedules.rejections import Rejection
from belfry.wire import catalogue
from belfry.wire.bounds import Bounds
from belfry.wire.safety import unsafe_reason

NAME: Final = "ScheduleRequest"
# Fields without a default: what lacks them cannot become a request.
_NAMED: Final = frozenset({"tenant", "schedule_id"})

Reference = int | bytes


class Schemas(NamedTuple):
    """What to read with: the writer's schema, ours where it differs, and how much is too much.

    Both schemas are as fastavro parses them, without logical types.  `ours` is None where the two
    are the same: then no field has to be resolved.
    """

    writer: Any
    ours: Any
    bounds: Bounds


# What a schema reference is known to stand for: schemas to read with, or a verdict.
Reading = Schemas | Rejection


def reading_of(writer: dict[str, Any]) -> Reading:
    """How records of a writer's schema are read, or why they are not; may take milliseconds."""
    unsafe = unsafe_reason(writer)
    if unsafe is not None:
        return Rejection("schema_unsafe", f"The writer's schema is not decoded: {unsafe}.")
    missing = _NAMED - {field["name"] for field in writer.get("fields", ())}
    if missing:
        return Rejection(
            "schema_not_a_request",
            f"The writer's schema is no {NAME}: it lacks {' and '.join(sorted(missing))}.",
        )
    try:
        if catalogue.fingerprint_of(writer) == catalogue.fingerprint(NAME):
            return own_schemas()
        parsed = parse_schema(catalogue.without_logical_types(writer))
        return Schemas(parsed, catalogue.plain(NAME), Bounds(parsed))
    except Exception as error:  # noqa: BLE001  # whatever fastavro makes of a stranger's schema
        return Rejection("schema_not_a_request", f"The writer's schema is unreadable: {error}")


@cache
def own_schemas() -> Schemas:
    """What to read today's own schema with."""
    ours = catalogue.plain(NAME)
    return Schemas(ours, None, Bounds(ours))


def shown(reference: Reference) -> str:
    """A reference as people see it: an id in digits, all else in hexadecimal ones."""
    return str(reference) if isinstance(reference, int) else reference.hex()


def refusal_of(reference: Reference) -> Rejection:
    """Why a record is refused whose reference stands for no schema that anybody knows."""
    if isinstance(reference, bytes) and len(reference) == 8:
        return Rejection(
            "unknown_schema_fingerprint",
            f"Fingerprint {shown(reference)} is none of belfry's own schemas: write with the"
            " bundled ScheduleRequest, or with a registry's prefix.",
        )
    return Rejection(
        "unknown_schema_id",
        f"The registry knows no schema {shown(reference)}: register ScheduleRequest first, or"
        " point producer and belfry at the same registry.",
    )
