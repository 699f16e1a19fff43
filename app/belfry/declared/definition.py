"""The definition of a schedule, existing or declared, by which two schedules are compared.

Not all fields of a request define a schedule: its name, its reason and its condition do not. The
other fields are brought into one form, in which absent, false and empty are the same, and are then
compared one by one:

    asked for   cron: 0 9 * * *   payload: daily    jitter_ms: 0
    stands      cron: 0 9 * * *   payload: weekly   jitter_ms: -
    differs                       payload

A delay counts from its request, so a schedule as it stands shows an instant instead. The record of
the set keeps a digest of the earlier request, which tells whether the same delay is declared again.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import orjson

from belfry.client.portable import request_fields
from belfry.schedules.fields import FIELDS, KIND_OF, NOT_DEFINING
from belfry.schedules.masking import MASK, masked_target

DECLARED: Final = {name: each for name, each in FIELDS.items() if name not in NOT_DEFINING}
DELAY: Final = "delay_ms"
TARGETS: Final = "http_targets"


def definition(request: Mapping[str, Any]) -> dict[str, Any]:
    """The definition in a request, in values that compare: None for an empty or false one."""
    found = {name: request.get(name) for name in DECLARED}
    return {
        name: value if name == "payload" or value not in (None, False, [], 0, b"") else None
        for name, value in found.items()
    }


def standing_definition(tenant: str, schedule_id: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a schedule that HTTP shows; `NotPortable` for one of a later release."""
    kept = {
        json: shown[json]
        for name, each in DECLARED.items()
        for json in each.json_names
        if shown.get(json) is not None and name != DELAY
    }
    kept["kind"] = shown.get("kind") or "AT"
    if kept["kind"] == "AFTER":
        kept |= {"kind": "AT", "at": shown.get("scheduled_at")}
    return definition(request_fields({"tenant": tenant, "schedule_id": schedule_id, **kept}))


def differing(
    wanted: Mapping[str, Any], stands: Mapping[str, Any], *, same_delay: bool
) -> list[str]:
    """Fields in which a schedule differs from the wanted definition.

    With `same_delay` its instant is that of a delay which was asked for before.  A target whose
    credentials are not shown is compared by the rest of it.
    """
    skipped = KIND_OF.keys() if same_delay else ()
    return [
        name
        for name in DECLARED
        if name not in skipped and not _equal(name, wanted[name], stands[name])
    ]


def _equal(name: str, wanted: Any, stands: Any) -> bool:
    """Whether a field is the same; masked credentials are left out of the comparison."""
    if name == TARGETS and wanted and stands and MASK in str(stands):
        return [masked_target(each) for each in wanted] == [masked_target(each) for each in stands]
    return bool(wanted == stands)


def digest_of(defined: Mapping[str, Any]) -> str:
    """The digest of this definition: 16 hex digits of a SHA-256 of its fields."""
    plain = {name: _plain(value) for name, value in defined.items()}
    return sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A value as text of which a digest can be made."""
    return value.hex() if isinstance(value, bytes) else orjson.dumps(value, default=_hex).decode()


def _hex(value: Any) -> str:
    return bytes(value).hex()
