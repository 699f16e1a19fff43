"""Levels: the priority of a schedule as a byte that sorts, and where it lies in a rule at rest.

    priority      9    8  …   1    0    -1  …  -9          higher ones go first
    level         01   02 …   09   none  0b …   13         none: as if there were no priorities

So a schedule of priority 0 has the bytes and the queue that it would have without priorities.  The
byte lies at a fixed place of the rule, right behind its bits: an event that is held back needs it
to find its queue (`engine/levels.py`), and no other part of the rule.
"""

from __future__ import annotations

from typing import Final

LOWEST: Final = -9
HIGHEST: Final = 9
# In the second word of a rule's bits: the priority is not 0.
LEVEL_BIT: Final = 1 << 6
# Where the level lies: behind format, kind and two words of bits.
LEVEL_AT: Final = 6
_MORE_AT: Final = 3
_MORE: Final = 1 << 7
_MIDDLE: Final = HIGHEST + 1


def level_for(priority: int) -> bytes:
    """The level of a priority other than 0."""
    return bytes((_MIDDLE - priority,))


def priority_at(level: int) -> int:
    """The priority that such a byte stands for; ValueError for a byte that no release writes."""
    priority = _MIDDLE - level
    if priority and LOWEST <= priority <= HIGHEST:
        return priority
    raise ValueError(f"A rule has the level {level}, which stands for no priority.")


def level_in(rule: bytes) -> bytes:
    """The level of a rule at rest, also of a later release; empty for priority 0, or no rule."""
    if len(rule) > LEVEL_AT and rule[_MORE_AT] & _MORE and rule[LEVEL_AT - 1] & LEVEL_BIT:
        return rule[LEVEL_AT : LEVEL_AT + 1]
    return b""


def first_to_last(levels: list[bytes]) -> list[bytes]:
    """Levels in the order in which they leave; the empty one is that of priority 0."""
    return sorted(levels, key=lambda level: level or bytes((_MIDDLE,)))
