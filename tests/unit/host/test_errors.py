"""No message ends behind its colon, and no kind of error is said twice."""

from __future__ import annotations

import re

import pytest
from aiokafka.errors import NodeNotReadyError

from belfry.host.errors import named
from tests.architecture.tree import ROOT

BARE = re.compile(r"\{type\((\w+)\)\.__name__\}: \{\1\}")
# It is pure and knows no shell; what it names is never empty.
PURE = ("app/belfry/wire/requests.py",)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "TimeoutError"),
        (OSError("no route"), "OSError: no route"),
        (OSError("ended: "), "OSError: ended"),
        (ValueError("ValueError"), "ValueError"),
        (NodeNotReadyError("node 1"), "NodeNotReadyError: node 1"),
    ],
)
def test_an_error_in_words(error: Exception, said: str) -> None:
    assert named(error) == said


def test_nobody_says_it_otherwise() -> None:
    found = [
        path
        for path in sorted((ROOT / "app").rglob("*.py"))
        if BARE.search(path.read_text("utf-8"))
    ]
    assert [str(path.relative_to(ROOT)) for path in found] == list(PURE)
