"""What a user is told about cron expressions and rules of RFC 5545, word by word.

``sentences.json`` holds for each text what is wrong with it (and at which character), or what it
means.  These are all that people see of how a text was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from belfry.schedules.triggers.cron_spelling import normalized
from belfry.schedules.triggers.cron_text import CronMistake
from belfry.schedules.triggers.cron_words import words_of as cron_words
from belfry.schedules.triggers.left_out import left_out_words
from belfry.schedules.triggers.rrule_text import read_rule
from belfry.schedules.triggers.rrule_values import RRuleMistake
from belfry.schedules.triggers.rrule_words import words_of as rrule_words
from belfry.schedules.triggers.union_text import check_text

SAID: Final = json.loads(Path(__file__).with_name("sentences.json").read_text("utf-8"))


def cron_fault(text: str) -> str:
    with pytest.raises(CronMistake) as caught:
        check_text(text)
    return f"{caught.value.position}: {caught.value}"


def rrule_fault(text: str) -> str:
    with pytest.raises(RRuleMistake) as caught:
        read_rule(text)
    return str(caught.value)


TOLD: Final[dict[str, Callable[[str], str]]] = {
    "wrong in cron": cron_fault,
    "meaning of cron": lambda text: cron_words(normalized(text)),
    "left out by cron": left_out_words,
    "wrong in a rule": rrule_fault,
    "meaning of a rule": lambda text: rrule_words(read_rule(text)),
}


@pytest.mark.parametrize(("what", "text"), [(what, text) for what in SAID for text in SAID[what]])
def test_it_is_told_so(what: str, text: str) -> None:
    assert TOLD[what](text) == SAID[what][text]


def test_all_of_it_is_there() -> None:
    assert SAID.keys() == TOLD.keys()
