"""The general way of a request goes through few files, and the count sees what it should."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

from belfry.engine import arrival
from tests.architecture.request_way import GENERAL, PLAIN, Call, Trace, on_the_way, way

MOST: Final = 12
FOLDER: Final = arrival.__file__.rpartition("/")[0]


def test_a_general_request_is_handed_on_a_few_times() -> None:
    calls = way(GENERAL)
    told = "\n".join(f"{each.caller} -> {each.called} {each.function}" for each in calls)
    assert 0 < on_the_way(calls) <= MOST, told
    # It ends in the store, so the whole way was followed.
    assert any(call.called == "store/schedules.py" for call in calls)


def test_a_plain_request_is_shorter() -> None:
    assert on_the_way(way(PLAIN)) < on_the_way(way(GENERAL))


def test_what_calls_on_is_told_from_what_answers() -> None:
    def within(name: str, code: str, **known: object) -> object:
        found = dict(known)
        exec(
            compile(code, f"{arrival.__file__.rpartition('/')[0]}/{name}", "exec"), found
        )  # a file of its own
        return found["ask"]

    inner = within("inner.py", "def ask(): return len('x')")
    middle = within("middle.py", "def ask(): return inner()", inner=inner)
    outer = within("outer.py", "def ask(): middle(); inner()", middle=middle, inner=inner)
    trace, before = Trace(), sys.getprofile()
    sys.setprofile(trace)
    try:
        outer()  # type: ignore[operator]
    finally:
        sys.setprofile(before)
    assert Counter(trace.calls) == {
        Call("engine/outer.py", "engine/middle.py", "ask", on_the_way=True): 1,
        Call("engine/middle.py", "engine/inner.py", "ask", on_the_way=False): 1,
        Call("engine/outer.py", "engine/inner.py", "ask", on_the_way=False): 1,
    }
