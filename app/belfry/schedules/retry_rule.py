"""How long a failed record waits for its next try: waits that grow, and an end.

    first=5s factor=2 most=1h attempts=8

    failed   1    2     3     4     …   7       8
    wait     5s   10s   20s   40s       5m20s   none: eight tries are all, the first one too

A part that is left out has its default: one second, twice as long each time, at most an hour, eight
tries. These are the defaults of the clients, whose retriers compute the same waits
(`clients/vectors.json` holds all of them to it).

A factor is a decimal fraction and kept exact, so every machine gets the same millisecond; powers of
a float depend on the library that a machine computes with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final

from belfry.schedules.instant_bounds import YEAR_MS
from belfry.schedules.instants import format_duration, parse_duration

# The header that holds such a text; on a record that is put back.
HEADER: Final = "belfry-retry"
EXAMPLE: Final = "first=5s factor=2 most=1h attempts=8 jitter=10%"
MOST_TEXT: Final = 200
# The most time that powers of the factor may cost for a record, of which many may come: 15 µs.
MOST_ATTEMPTS: Final = 200
MOST_FACTOR: Final = 100
_BETWEEN: Final = re.compile(r"[\s,;]+")
_FACTOR: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?")
_COUNT: Final = re.compile(r"[0-9]{1,3}")
_SHARE: Final = re.compile(r"([0-9]{1,3})%")


@dataclass(frozen=True, slots=True)
class RetryRule:
    """Waits between the tries of a record, in milliseconds; `attempts` counts the first one too."""

    first_ms: int = 1_000
    factor: Fraction = Fraction(2)
    most_ms: int = 3_600_000
    attempts: int = 8
    jitter_percent: int = 0

    def wait_ms(self, failed: int) -> int | None:
        """How long to wait after so many failed tries (1 and up); None: no try is left."""
        if failed >= self.attempts:
            return None
        times = failed - 1
        above, below = self.factor.numerator**times, self.factor.denominator**times
        grown_ms: int = self.first_ms * above // below
        return min(grown_ms, self.most_ms)

    def jitter_ms(self, wait_ms: int) -> int:
        """How much later the next try may be, at most; which instant it is follows from its id."""
        return wait_ms * self.jitter_percent // 100


def parse_retry_rule(text: str) -> RetryRule:
    """The rule that a text holds; else ValueError, which says what is allowed.

    Parts stand behind one another in any order, with blanks, commas or semicolons between them.
    """
    if len(text) > MOST_TEXT:
        raise ValueError(f"{len(text)} characters are too many: at most {MOST_TEXT}.")
    given: dict[str, Any] = {}
    for part in filter(None, _BETWEEN.split(text)):
        name, _, value = part.partition("=")
        if name not in _PARTS:
            raise ValueError(_unknown(part, name))
        field, read = _PARTS[name]
        if field in given:
            raise ValueError(f"{name} is given twice: keep one.")
        try:
            given[field] = read(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    rule = RetryRule(**given)
    if rule.first_ms > rule.most_ms:
        raise ValueError(
            f"first {format_duration(rule.first_ms)} is longer than most"
            f" {format_duration(rule.most_ms)}, which no wait exceeds: give a shorter first, or a"
            " longer most."
        )
    return rule


def _unknown(part: str, name: str) -> str:
    close = get_close_matches(name.lower()[:20], _PARTS, 1)
    meant = f"; did you mean {close[0]}?" if close else "."
    known = ", ".join(_PARTS)
    return f"{part!r:.60} is none of its parts{meant} Known are {known}, such as {EXAMPLE}."


def _wait(text: str) -> int:
    wait_ms = parse_duration(text)
    if not 1 <= wait_ms <= YEAR_MS:
        raise ValueError(f"{text!r} is not 1ms to {format_duration(YEAR_MS)}.")
    return wait_ms


def _factor(text: str) -> Fraction:
    factor = Fraction(text) if _FACTOR.fullmatch(text) else Fraction(0)
    if not 1 <= factor <= MOST_FACTOR:
        raise ValueError(f"{text!r} is not 1 to {MOST_FACTOR}, with three decimals at most.")
    return factor


def _attempts(text: str) -> int:
    attempts = int(text) if _COUNT.fullmatch(text) else 0
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise ValueError(f"{text!r} is not 1 to {MOST_ATTEMPTS} tries, the first one too.")
    return attempts


def _share(text: str) -> int:
    found = _SHARE.fullmatch(text)
    if found is None or int(found[1]) > 100:
        raise ValueError(
            f"{text!r} is not 0% to 100% of each wait; one of a fixed length is the header"
            " belfry-jitter."
        )
    return int(found[1])


_PARTS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "first": ("first_ms", _wait),
    "factor": ("factor", _factor),
    "most": ("most_ms", _wait),
    "attempts": ("attempts", _attempts),
    "jitter": ("jitter_percent", _share),
}
