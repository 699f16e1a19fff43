"""HTTP targets: where fired events are posted to, what is wrong with one, and targets at rest.

A target's address is read strictly: what a URL parser might read in two ways is refused, so that
the host that is checked is the host that is dialled.  Which addresses a host may stand for is
checked when it is dialled (`delivery/addresses.py`), not here: names change their addresses.

At rest targets are JSON, a list of objects that leave defaults out, in the order given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from ipaddress import IPv6Address
from typing import Any, Final, Literal

import orjson

from belfry.schedules.header_secrets import syntax_problem

Strategy = Literal["ALL", "FIRST_AVAILABLE", "ROUND_ROBIN", "UNKNOWN"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("ALL", "FIRST_AVAILABLE", "ROUND_ROBIN")

MAX_TARGETS: Final = 16
MAX_BYTES: Final = 16_384
MAX_URL: Final = 2_048
MAX_TIMEOUT_MS: Final = 60_000
MAX_ATTEMPTS: Final = 1_000
MAX_HEADERS: Final = 32

# Printable ASCII that RFC 3986 allows; no userinfo, no fragment, no backslash, no bare brackets.
_URL: Final = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9.])?)(?::([0-9]{1,5}))?"
    r"(?:[/?][A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*)?"
)
_NUMERIC: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?$")
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_VISIBLE: Final = re.compile(r"[\x20-\x7e\t]{0,4096}")
# What the connection or belfry itself says; nobody else may.
RESERVED_HEADERS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"),
        *("te", "trailer", "expect", "proxy-authorization", "proxy-connection", "user-agent"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
    }
)


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """Where fired events are posted to; `headers` are pairs of name and value."""

    url: str
    timeout_ms: int = 10_000
    max_attempts: int = 0
    secret_ref: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    strategy: Strategy = "ALL"

    @property
    def host(self) -> str:
        """The host that the address names, in lower case; empty where the address is none."""
        match = _URL.fullmatch(self.url)
        return "" if match is None else match[2].lower().rstrip(".")


_DEFAULTS: Final = {each.name: each.default for each in fields(HttpTarget)}
_FIELDS: Final = _DEFAULTS.keys()


def target_of(record: dict[str, Any]) -> HttpTarget:
    """A target from a decoded record of a policy or of a request."""
    headers = tuple((header["name"], header["value"]) for header in record["headers"])
    return HttpTarget(**{**record, "headers": headers})


def record_of(given: Mapping[str, Any] | str) -> dict[str, Any]:
    """A target as Avro has it, from an address or from some of the fields."""
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
    defaults = {name: value for name, value in _DEFAULTS.items() if name != "url"}
    return {**defaults, **fields_given, "headers": headers}


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


def problems_of(target: HttpTarget) -> list[str]:
    """What is wrong with a target, whoever names it."""
    shown = repr(target.url[:200])
    found = []
    if len(target.url) > MAX_URL or not _good_url(target.url):
        found.append(
            f"url {shown} of a target is no absolute http or https address of at most {MAX_URL}"
            " characters, such as https://hooks.example.com/belfry: leave out user names, fragments"
            " and what is no ASCII."
        )
    if not 1 <= target.timeout_ms <= MAX_TIMEOUT_MS:
        found.append(
            f"timeout_ms of {shown} is {target.timeout_ms}; 1 to {MAX_TIMEOUT_MS} is allowed."
        )
    if not 0 <= target.max_attempts <= MAX_ATTEMPTS:
        found.append(
            f"max_attempts of {shown} is {target.max_attempts}; 0 to {MAX_ATTEMPTS} is allowed."
        )
    return found + _bad_headers(target)


def _good_url(url: str) -> bool:
    match = _URL.fullmatch(url)
    if match is None or not (match[3] is None or 1 <= int(match[3]) <= 65_535):
        return False
    if match[2].startswith("["):
        return _is_ipv6(match[2][1:-1])
    # A host that ends in a number is an IPv4 address, and in one way of writing alone.
    return _NUMERIC.search(match[2]) is None or _IPV4.fullmatch(match[2]) is not None


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _bad_headers(target: HttpTarget) -> list[str]:
    if len(target.headers) > MAX_HEADERS:
        return [f"A target has {len(target.headers)} headers; at most {MAX_HEADERS} are allowed."]
    found = [
        f"Header {name[:60]!r} of a target is not allowed: a name of letters, digits and - that is"
        " not belfry's or the connection's own, and a value of printable ASCII."
        for name, value in target.headers
        if not fit_header(name, value)
    ]
    unread = (syntax_problem(name, value) for name, value in target.headers)
    return found + [why for why in unread if why is not None]


def fit_header(name: str, value: str) -> bool:
    """Whether a header may travel in a delivery as it is."""
    return (
        _TOKEN.fullmatch(name) is not None
        and name.lower() not in RESERVED_HEADERS
        and _VISIBLE.fullmatch(value) is not None
    )


def list_problem(targets: Sequence[HttpTarget]) -> str | None:
    """Why a schedule or a policy cannot have these targets, or None."""
    if len(targets) > MAX_TARGETS:
        return f"{len(targets)} http_targets; at most {MAX_TARGETS} are allowed."
    unknown = next((each.strategy for each in targets if each.strategy not in STRATEGIES), None)
    if unknown is not None:
        return f"strategy {unknown!r} of a target is not known: {', '.join(STRATEGIES)}."
    for target in targets:
        found = problems_of(target)
        if found:
            return found[0]
    size = len(encode_targets(targets))
    if size > MAX_BYTES:
        return f"http_targets take {size} bytes; at most {MAX_BYTES} are allowed."
    return None


def allowed(host: str, allowed_hosts: Iterable[str]) -> bool:
    """Whether a host is one of these; ``*.example.com`` stands for those below; none: every one."""
    names = [name.lower().rstrip(".") for name in allowed_hosts]
    return not names or any(
        host == name or (name.startswith("*.") and host.endswith(name[1:])) for name in names
    )


def encode_targets(targets: Iterable[HttpTarget]) -> bytes:
    """Targets as they lie at rest."""
    return orjson.dumps([_compact(target) for target in targets])


def decode_targets(encoded: bytes) -> tuple[HttpTarget, ...]:
    """Targets from their bytes at rest; none from no bytes."""
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
