"""Targets over HTTP: addresses that events are posted to.

An address is read strictly: a text that URL parsers might read in two ways is refused, so that the
host that is checked is the host that is dialled.  Which addresses a host may stand for is checked
when it is dialled (`delivery/addresses.py`), not here: names change their addresses.

    https://hooks.example.com/x        good
    https://user@evil.example/x        refused: parsers differ about what the host is
    http://0x7f.1/x, http://2130706433 refused: other spellings of 127.0.0.1
    http://[::1]/x                     good here; refused when it is dialled, unless that is allowed

Most ways to reach a network from inside (SSRF) begin with an address that two programs read in two
ways.  The expression below is a part of RFC 3986 that has one reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from belfry.schedules.header_secrets import syntax_problem
from belfry.schedules.target_kinds.kind import TargetKind
from belfry.schedules.targets import (
    MAX_ATTEMPTS,
    MAX_HEADERS,
    MAX_TIMEOUT_MS,
    MAX_URL,
    HttpTarget,
    fit_header,
)

# Printable ASCII that RFC 3986 allows; no userinfo, no fragment, no backslash, no bare brackets.
_URL: Final = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9.])?)(?::([0-9]{1,5}))?"
    r"(?:[/?][A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*)?"
)
_NUMERIC: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?$")
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}")


class HttpTargetKind(TargetKind):
    """Addresses over http and https; one that nobody knows is a bad one of these."""

    name = "http"

    def knows(self, url: str) -> bool:
        """Whether it begins as an address of HTTP does."""
        return url.startswith(("http:", "https:"))

    def place(self, url: str) -> str:
        """The host that the address names, in lower case, without a port or a final dot."""
        match = _URL.fullmatch(url)
        return "" if match is None else match[2].lower().rstrip(".")

    def share(self, url: str) -> str:
        """A host, with its port."""
        return urlsplit(url).netloc.lower()

    def problems(self, target: HttpTarget) -> list[str]:
        """An address that has one reading, numbers within their bounds, headers that may travel."""
        shown = repr(target.url[:200])
        found = []
        if len(target.url) > MAX_URL or not _good_url(target.url):
            found.append(
                f"url {shown} of a target is no absolute http or https address of at most {MAX_URL}"
                " characters, such as https://hooks.example.com/belfry: leave out user names,"
                " fragments and what is no ASCII."
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

    def allows(self, place: str, entries: Sequence[str]) -> bool:
        """Whether a host is one of these; ``*.example.com``: those below; none: every one."""
        names = [name.lower().rstrip(".") for name in entries]
        return not names or any(
            place == name or (name.startswith("*.") and place.endswith(name[1:])) for name in names
        )


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


HTTP: Final = HttpTargetKind()
