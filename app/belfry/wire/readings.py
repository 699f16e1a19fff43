"""How records of a writer's schema are read, or why they are not.

A value names the schema that wrote it by a *reference*: the id of a registry (an int), or a
fingerprint or a GUID (bytes). The *reading* of a reference is settled once and then kept:

    reference ─► writer's schema ─► safe to decode? ─► has tenant and id? ─► a *reading*
                                        │ no               │ no
                                        ▼                  ▼
                                    schema_unsafe      schema_not_a_request

A reading has the schemas to decode with, or the refusal that each record of this reference gets. To
make a reading costs milliseconds, since fastavro parses the schema and `bounds` measures it. So the
shell makes it once for all partitions, and the hot path looks it up.

If the writer's schema is belfry's own, nothing has to be resolved, and most records are not even
decoded (`quick`).
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
# Fields without a default: a record that lacks one cannot become a request.
_NAMED: Final = frozenset({"tenant", "schedule_id"})

Reference = int | bytes


class Schemas(NamedTuple):
    """How to read: the writer's schema, belfry's own if it differs, and the bounds on values.

    Both schemas are as fastavro parses them, without logical types. `ours` is None if the two are
    the same: then no field has to be resolved.
    """

    writer: Any
    ours: Any
    bounds: Bounds


# The known meaning of a schema reference: schemas to read with, or a refusal.
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
    except Exception as error:  # noqa: BLE001  # any error of fastavro for a foreign schema
        return Rejection("schema_not_a_request", f"The writer's schema is unreadable: {error}")


@cache
def own_schemas() -> Schemas:
    """The schemas for records of this release's own schema."""
    ours = catalogue.plain(NAME)
    return Schemas(ours, None, Bounds(ours))


def shown(reference: Reference) -> str:
    """A reference for people: an id in decimal digits, anything else in hexadecimal ones."""
    return str(reference) if isinstance(reference, int) else reference.hex()


def refusal_of(reference: Reference) -> Rejection:
    """Why a record is refused whose reference stands for no known schema."""
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
