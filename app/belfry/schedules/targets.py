"""Delivery targets: where fired events go besides their topic, and how targets lie at rest.

The kind of a target judges it (`target_kinds`).  The class is called `HttpTarget` after the first
kind, and serves all kinds.

At rest targets are JSON, a list of objects that leave defaults out, in the order given:

    [{"url":"https://hooks.example.com/x","timeout_ms":5000},{"url":"kafka:payments.audit"}]

They are a part of the schedule's rule (`triggers/encoding`), behind everything else, so that a
trigger is made and remembered without them.  A policy's targets have the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import orjson

Strategy = Literal["ALL", "FIRST_AVAILABLE", "ROUND_ROBIN", "UNKNOWN"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("ALL", "FIRST_AVAILABLE", "ROUND_ROBIN")

MAX_TARGETS: Final = 16
MAX_BYTES: Final = 16_384
MAX_URL: Final = 2_048
MAX_TIMEOUT_MS: Final = 60_000
MAX_ATTEMPTS: Final = 1_000
MAX_HEADERS: Final = 32

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_VISIBLE: Final = re.compile(r"[\x20-\x7e\t]{0,4096}")
# Headers that the connection or belfry itself sets; nobody else may.
RESERVED_HEADERS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"),
        *("te", "trailer", "expect", "proxy-authorization", "proxy-connection", "user-agent"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
    }
)


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """Where fired events go as well; `headers` are pairs of name and value."""

    # The docstring is a description of the HTTP API (`docs/openapi.json`), so more is said here.
    url: str
    # Of one attempt.
    timeout_ms: int = 10_000
    # 0 takes the number of the tenant's policy (`tenants/deliveries.py`).
    max_attempts: int = 0
    # Names the secret that signs the event, and is never the secret itself.
    secret_ref: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    # How the targets of one list share events: with ALL each target gets every event, with
    # FIRST_AVAILABLE the first target that takes it, and with ROUND_ROBIN each event goes to the
    # next target.  A reader sees UNKNOWN in place of a strategy that is newer than it is.
    strategy: Strategy = "ALL"


_DEFAULTS: Final = {each.name: each.default for each in fields(HttpTarget)}
_FIELDS: Final = _DEFAULTS.keys()


def target_of(record: dict[str, Any]) -> HttpTarget:
    """A target from a decoded record of a policy or of a request."""
    headers = tuple((header["name"], header["value"]) for header in record["headers"])
    return HttpTarget(**{**record, "headers": headers})


def record_of(given: Mapping[str, Any] | str) -> dict[str, Any]:
    """A target as Avro has it, from an address or from some of the fields.

    Doors for people call it: ``"https://h.example/x"`` or ``{"url": …, "timeout_ms": 5000}``.
    ValueError where the address is missing or a field is not known.
    """
    fields_given = {"url": given} if isinstance(given, str) else dict(given)
    unknown = fields_given.keys() - _FIELDS
    if unknown or "url" not in fields_given:
        raise ValueError(
            f"HTTP target {given!r:.200} needs url, and may have"
            f" {', '.join(sorted(_FIELDS - {'url'}))}"
        )
    headers = [
        {"name": each["name"], "value": each.get("value", "")} for each in _pairs(fields_given)
    ]
    return {**_DEFAULTS, **fields_given, "headers": headers}


def _pairs(fields_given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Headers as objects of name and value, however they are given."""
    found = fields_given.get("headers", ())
    if isinstance(found, Mapping):
        return [{"name": name, "value": value} for name, value in found.items()]
    return list(found)


def records_in(encoded: bytes) -> list[dict[str, Any]]:
    """Targets at rest as JSON shows them: headers as objects, defaults left out."""
    found = [_compact(target) for target in decode_targets(encoded)]
    for each in found:
        if "headers" in each:
            each["headers"] = [{"name": name, "value": value} for name, value in each["headers"]]
    return found


def fit_header(name: str, value: str) -> bool:
    """Whether a header may travel in a delivery as it is."""
    return (
        _TOKEN.fullmatch(name) is not None
        and name.lower() not in RESERVED_HEADERS
        and _VISIBLE.fullmatch(value) is not None
    )


def encode_targets(targets: Iterable[HttpTarget]) -> bytes:
    """Targets as they lie at rest."""
    return orjson.dumps([_compact(target) for target in targets])


def decode_targets(encoded: bytes) -> tuple[HttpTarget, ...]:
    """Targets from their bytes at rest; none from no bytes.

    The bytes come from `encode_targets`, so they are not checked once more.
    """
    return targets_from(orjson.loads(encoded)) if encoded else ()


def targets_from(given: list[dict[str, Any]]) -> tuple[HttpTarget, ...]:
    """Targets from the JSON of `encode_targets`."""
    return tuple(
        HttpTarget(**{**each, "headers": tuple(map(tuple, each.get("headers", ())))})
        for each in given
    )


def is_typed(target: HttpTarget) -> bool:
    """Whether a target's fields are of their types, which JSON of somebody else's may not be."""
    given = (target.url, target.timeout_ms, target.max_attempts, target.strategy)
    return (
        tuple(map(type, given)) == (str, int, int, str)
        and (target.secret_ref is None or type(target.secret_ref) is str)
        and all(tuple(map(type, header)) == (str, str) for header in target.headers)
    )


def _compact(target: HttpTarget) -> dict[str, Any]:
    given = {name: getattr(target, name) for name in _DEFAULTS}
    return {name: value for name, value in given.items() if value != _DEFAULTS[name]}
