"""Addresses of Kafka brokers as they are given: what is none is refused before it is tried.

A client of Kafka tries an address that means nothing for ever, or takes one that nobody meant: an
empty host is this machine, and an empty port is 0.
"""

from __future__ import annotations

from typing import Final

ALLOWED: Final = "give host:port, several with commas, such as kafka-1:9092,kafka-2:9092"
MOST_PORT: Final = 65_535


def brokers(given: str) -> str:
    """The addresses as they are; ValueError says what is wrong with the first bad one.

    A port may be left out (9092); a protocol that librdkafka knows, such as ``SSL://``, may stand
    before it.
    """
    if not given.strip():
        raise ValueError(f"it is empty: {ALLOWED}, or leave it out for 127.0.0.1:9092")
    for each in given.split(","):
        problem = _problem(each.strip())
        if problem:
            raise ValueError(f"{problem}: {ALLOWED}")
    return given


def _problem(address: str) -> str:
    if not address:
        return "there is nothing between two commas, or behind the last one"
    protocol, found, rest = address.rpartition("://")
    if found and protocol.lower() in ("http", "https"):
        return f"{address!r} is the address of a web page, and Kafka speaks no HTTP"
    host, port = _divided(rest)
    if not host:
        return f"{address!r} has no host before its port"
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port) <= MOST_PORT):
        return f"{address!r} has no port from 1 to {MOST_PORT} behind its colon"
    return ""


def _divided(address: str) -> tuple[str, str | None]:
    """Host and port; None for no port.  An address of IPv6 stands in brackets."""
    host, bracket, rest = address.rpartition("]")
    if bracket:
        # Without its colon what follows is no port, as an empty one is none.
        return host + bracket, (rest[1:] if rest.startswith(":") else "") if rest else None
    host, colon, port = address.partition(":")
    return host, port if colon else None
