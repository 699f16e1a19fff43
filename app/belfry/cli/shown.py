"""Output of commands: text for people, JSON for programs, and no codes that steer a terminal.

JSON names are the schema's, and instants RFC 3339. Verdicts and events are in `belfry.cli.results`.

    --output   one result          several                             notes
    text       lines               lines                               stderr
    json       an object           an array, also where it was cut     none
    jsonl      an object a line    an object a line, as they come      none

Ids, payloads and reasons are written by strangers. A terminal obeys control characters, so none is
sent to it: `tame` is for whole outputs, `plain` for a piece of text within a line. In JSON they are
escaped as JSON escapes them, and a program reads what was there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from time import monotonic
from typing import Any, Final, TypeVar
from unicodedata import category

from belfry.cli.termination import ended_after
from belfry.schedules.instants import format_duration, format_instant

T = TypeVar("T")
# Prints one result: the record for programs, the text for people.
Tell = Callable[[Mapping[str, Any], str], None]
PROGRESS_S: Final = 5.0


class Output(StrEnum):
    """Forms of output: for people, one document for programs, a line for each result."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class Printer:
    """Prints results to stdout in the form that was asked for.

    Results hold texts of strangers, so control codes are shown and never sent (`tame`). Each result
    is flushed, for another program may wait for it.
    """

    def __init__(self, output: Output) -> None:
        self.output = output

    @property
    def for_people(self) -> bool:
        """Whether this is text."""
        return self.output is Output.TEXT

    def one(self, record: Mapping[str, Any], text: str) -> None:
        """One result: `record` for programs, `text` for people."""
        self._print(text if self.for_people else _json(record, self.output))

    def lines(self, texts: Iterable[str]) -> None:
        """Results for people, a line each, flushed together; nothing for programs."""
        if self.for_people and (text := "\n".join(texts)):
            self._print(text)

    def many(self, results: Iterable[tuple[Mapping[str, Any], str]]) -> None:
        """Results as they come: lines of text, lines of JSON, or one JSON array.

        Where the results end by an exception the array is closed before it goes on.
        """
        with self.several() as tell:
            for record, text in results:
                tell(record, text)

    @contextmanager
    def several(self) -> Iterator[Tell]:
        """What prints one of several results: for those that come by calls, not by iteration.

        One JSON array if JSON is asked for: empty without results, and closed if an error, Ctrl-C
        or SIGTERM has ended them.
        """
        if self.output is not Output.JSON:
            yield self.one
            return
        started = False

        def tell(record: Mapping[str, Any], _text: str) -> None:
            nonlocal started
            text = _json(record, Output.JSONL)
            # In one piece: an error or Ctrl-C between comma and record would spoil the array.
            self._print(",\n" + text if started else "\n" + text, end="")
            started = True

        with ended_after():
            self._print("[", end="")
            try:
                yield tell
            finally:
                self._print("\n]" if started else "]")

    def listed(
        self, results: Iterable[tuple[Mapping[str, Any], str]], heading: str, none: str
    ) -> None:
        """Results under a heading for people, or the given sentence if there are no results."""
        found = iter(results)
        first = next(found, None)
        self.note(none if first is None else heading)
        self.many(found if first is None else chain([first], found))

    def note(self, text: str) -> None:
        """Something for people that is no result: to stderr."""
        if self.for_people:
            print(tame(text), file=sys.stderr, flush=True)

    def counted(
        self, each: Iterable[T], what: str, now_s: Callable[[], float] = monotonic
    ) -> Iterator[T]:
        """The same; every few seconds a note says how many have come."""
        next_s = now_s() + PROGRESS_S
        for number, one in enumerate(each, 1):
            yield one
            if (at_s := now_s()) >= next_s:
                self.note(f"{number:,} {what} …")
                next_s = at_s + PROGRESS_S

    def _print(self, text: str, end: str = "\n") -> None:
        print(tame(text), end=end, flush=True)


def _json(record: Mapping[str, Any], output: Output) -> str:
    """A record as JSON, with indentation where it is the whole document."""
    import orjson

    option = orjson.OPT_INDENT_2 if output is Output.JSON else 0
    return orjson.dumps(record, option=option).decode()


def tame(text: str) -> str:
    """Lines that cannot command a terminal: its control characters are shown, not sent.

    They are shown as JSON writes them, so that JSON stays what it was.
    """
    return "\n".join(
        line if line.isprintable() else "".join(map(_shown, line)) for line in text.split("\n")
    )


def _shown(character: str) -> str:
    """A character as it is, or its escape in JSON where a terminal could obey it."""
    # Controls, marks that turn the direction of writing, and the separators of lines.
    if category(character)[0] != "C" and character not in "\u2028\u2029":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def plain(text: str) -> str:
    """Text in one line that cannot move a terminal's cursor: controls are shown, not sent."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def instant_json(ms: int | None) -> str | None:
    """An instant for programs: RFC 3339 in UTC with milliseconds, None for None."""
    return None if ms is None else format_instant(ms)


def from_now(ms: int, now_ms: int) -> str:
    """How far an instant is away, for people: ``in 4m59s``, ``2s ago``."""
    away = abs(ms - now_ms)
    if away < 1000:
        return "now"
    text = format_duration(away // 1000 * 1000)
    return f"in {text}" if ms > now_ms else f"{text} ago"


def amount(number: int, thing: str) -> str:
    """How many of a thing: ``1 record``, ``3 records``."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def partitions_text(numbers: Sequence[int]) -> str:
    """Partitions by their numbers: ``partition 3``, ``partitions 1, 2``."""
    listed = ", ".join(map(str, numbers))
    return f"partition {listed}" if len(numbers) == 1 else f"partitions {listed}"
