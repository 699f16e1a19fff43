"""Addresses of a registry: whether they are valid, and how they may be shown.

An address may hold a user name and a password, and a password that was not percent-encoded divides
the address at the wrong place. So an address that is not read cleanly is never shown.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

UNREADABLE: Final = (
    "The schema registry's address (BELFRY_SCHEMA_REGISTRY_URL) cannot be read, and is not shown"
    " since it may hold a password. Allowed is http://HOST:PORT/PATH or https://…, several with"
    " commas; in a user name and a password write @ as %40, / as %2F, # as %23, ? as %3F and a"
    " comma as %2C, or give them as BELFRY_REGISTRY__BASIC_AUTH_USER_INFO."
)


def is_readable(url: str) -> bool:
    """Whether these are absolute HTTP addresses, whatever the passwords in them."""
    return all(map(_is_readable, url.split(",")))


def shown(url: str) -> str:
    """Addresses without user names and passwords; a fixed text for unreadable ones."""
    if not is_readable(url):
        return "an address that is not shown"
    return ",".join(map(_without_credentials, url.split(",")))


def _is_readable(address: str) -> bool:
    """Whether one address is absolute, and has no ``@`` in a place where a password may have
    divided it.
    """
    try:
        parts = urlsplit(address.strip())
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme == "mock":
        # A registry in memory, which Confluent's client has for tests.
        return "@" not in address
    behind = parts.path + parts.query + parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in behind


def _without_credentials(address: str) -> str:
    """One address without the user name and password before its host."""
    parts = urlsplit(address.strip())
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
