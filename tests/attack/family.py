"""Attacks in families: each attack has a name, what is sent, and the one right answer.

What is right is written down from the documents (the contract, docs/http.md, docs/rejections.md,
docs/webhooks.md) when the table is made, never asked of the code under attack.  One test judges a
whole family and tells of every attack that got another answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
MOST_SHOWN = 100


class Attack(NamedTuple, Generic[T]):
    """One of a family; `right` is the answer, or several of which each would be right."""

    name: str
    given: T
    right: object


def judge(attacks: Iterable[Attack[T]], answer: Callable[[T], object], least: int) -> None:
    """Each attack gets its right answer; `least` is how many the family promises to be."""
    given = list(attacks)
    assert len(given) >= least, f"{len(given)} attacks of {least}"
    assert len({each.name for each in given}) == len(given), "two attacks have one name"
    wrong = []
    for name, attack, right in given:
        found = answer(attack)
        if found not in (right if isinstance(right, frozenset) else (right,)):
            wrong.append(f"{name}: {found!r} instead of {right!r}")
    shown = "\n".join(wrong[:MOST_SHOWN])
    assert not wrong, f"{len(wrong)} of {len(given)} attacks got a wrong answer:\n{shown}"
    print(f"{len(given)} attacks")
