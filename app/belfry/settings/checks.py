"""Checks of values that a bound or a pattern cannot make: addresses, secrets, intervals.

Each takes a value as it is given and hands it back, or raises ValueError with a clause that says
what is wrong and what to give instead. The code that makes the settings tells it with the name of
the setting and its variable. What is no good is refused here because it would be believed later: a
client of Kafka tries an address that means nothing for ever, or takes one that nobody meant (an
empty host is this machine, and an empty port is 0); a short secret can be guessed; and figures of
odd intervals have gaps.

    kafka-1:9092,kafka-2          fine: a port may be left out
    kafka-1:9092,                 there is nothing between two commas, or behind the last one
    http://kafka:9092             is the address of a web page, and Kafka speaks no HTTP
    7000 (ms, of the canary)      is neither 0 nor 1 000 or more and a divisor of an hour
"""

from __future__ import annotations

from typing import Final

from pydantic import SecretStr

BROKERS_ALLOWED: Final = "give host:port, several with commas, such as kafka-1:9092,kafka-2:9092"
MOST_PORT: Final = 65_535
# Characters of the shortest secret that workers sign with.
LEAST_SECRET: Final = 16
# Measurements are kept by hours, so their intervals have to fill an hour exactly.
HOUR_MS: Final = 3_600_000
# Each period is a record for each tenant that used anything, so periods are not shorter.
METERED_LEAST_MS: Final = 10_000


def brokers(given: str) -> str:
    """The addresses as they are; ValueError says what is wrong with the first bad one.

    A port may be left out (9092); a protocol that librdkafka knows, such as ``SSL://``, may stand
    before it.
    """
    if not given.strip():
        raise ValueError(f"it is empty: {BROKERS_ALLOWED}, or leave it out for 127.0.0.1:9092")
    for each in given.split(","):
        problem = _problem(each.strip())
        if problem:
            raise ValueError(f"{problem}: {BROKERS_ALLOWED}")
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


def long_enough(secret: SecretStr) -> SecretStr:
    """The secret, unless it could be guessed; ValueError without its text."""
    size = len(secret.get_secret_value())
    if size < LEAST_SECRET:
        raise ValueError(f"it has {size} characters; {LEAST_SECRET} or more are needed")
    return secret


def divides_an_hour(interval_ms: int) -> int:
    """An interval of the canary in ms; ValueError unless it is 0, or a second or more and a
    divisor.
    """
    if interval_ms and (interval_ms < 1_000 or HOUR_MS % interval_ms):
        raise ValueError(
            f"{interval_ms} is neither 0 nor 1 000 or more and a divisor of an hour;"
            " 10000 asks every ten seconds"
        )
    return interval_ms


def meters_an_hour(interval_ms: int) -> int:
    """A period of metering in ms; ValueError unless it is 0, or a divisor of an hour."""
    if interval_ms and (interval_ms < METERED_LEAST_MS or HOUR_MS % interval_ms):
        raise ValueError(
            f"{interval_ms} is neither 0 nor 10 000 or more and a divisor of an hour;"
            " 3600000 counts by the hour"
        )
    return interval_ms
