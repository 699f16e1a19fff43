"""One spelling of a cron expression: aliases and H written out, in upper case.

    @daily            0 0 * * *
    h/15 * * * mon    8-59/15 * * * MON      for the schedule `hello` of the tenant `demo`
    H H(1-5) * * *    53 1 * * *             for the same one

Schedules with one expression share all that is compiled of it, so expressions are compared after
they have been brought into this form.  A text that cannot be read stays as it is: `cron_text`
refuses it, and quotes it as it was written.

``H`` is Jenkins' sign for a number that spreads the load: it follows from the names of tenant and
schedule, so it is another one for each schedule, and the same one at each fire.  The numbers are
frozen: another one would move schedules that are at rest.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from cronsim.cronsim import RANGES
from cronsim.cronsim import Field as Unit

ALIASES: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
YEARS: Final = range(1970, 2200)
# The range of H where it gives none: every month has a day up to 28, and Sunday is 0.
HASHED: Final = {**{unit: RANGES[unit] for unit in Unit}, Unit.DAY: range(1, 29)}
HASHED[Unit.DOW] = range(7)
LAYOUTS: Final[dict[int, tuple[object, ...]]] = {
    5: tuple(Unit)[1:],
    6: tuple(Unit),
    7: (*Unit, "year"),
}
_HAS_H: Final = re.compile(r"(?:^|[\s,|])H(?=$|[\s,(/|])", re.IGNORECASE)
_H: Final = re.compile(r"H(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?")


def seed_of(tenant: str, schedule_id: str) -> int:
    """The seed of the numbers of H."""
    name = f"{tenant}/{schedule_id}".encode(errors="replace")
    return int.from_bytes(sha256(name).digest()[:7], "big")


def is_hashed(text: str) -> bool:
    """Whether a text has an H that stands for a number."""
    return _HAS_H.search(text) is not None


def normalized(text: str, seed: int | None = None) -> str:
    """The same expression in one spelling: upper case, single blanks, aliases and H written out."""
    upper = " ".join(text.upper().split())
    if is_hashed(upper):
        return _written_out(upper, seed or 0)
    return ALIASES.get(upper, upper)


def _written_out(text: str, seed: int) -> str:
    """An expression with numbers in place of H; items that cannot be read stay."""
    words = text.split(" ")
    layout = LAYOUTS.get(len(words))
    if layout is None:
        return text
    return " ".join(
        ",".join(_number_or_item(unit, item, seed) for item in word.split(","))
        for unit, word in zip(layout, words, strict=True)
    )


def _number_or_item(unit: object, item: str, seed: int) -> str:
    if not isinstance(unit, Unit) or not item.startswith("H"):
        return item
    try:
        return number_for(unit, item, seed)
    except ValueError:
        return item


def number_for(unit: Unit, item: str, seed: int) -> str:
    """The item that an H stands for: a number of its range, or steps from such a number on.

    ValueError if an item that begins with H cannot be read.
    """
    match = _H.fullmatch(item)
    if match is None:
        raise ValueError(item)
    allowed = HASHED[unit]
    first = within(allowed, match[1] or str(allowed[0]))
    last = within(range(first, allowed.stop), match[2] or str(allowed[-1]))
    step = within(range(1, last - first + 2), match[3]) if match[3] else 0
    drawn = int.from_bytes(sha256(b"%d %d" % (seed, unit)).digest()[:8], "big")
    if not step:
        return str(first + drawn % (last - first + 1))
    begin = first + drawn % step
    return f"{begin}-{last}/{step}" if begin < last else str(begin)


def within(allowed: range, number: str) -> int:
    """A number in digits, where it lies in a range; ValueError where it does not."""
    if int(number) not in allowed:
        raise ValueError(number)
    return int(number)
