"""No message ends behind its colon, and no kind of error is said twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

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


# Kinds that may have no text, or one that is a name and a dictionary.
WORDLESS = {"TimeoutError", "KafkaException", "ClientError"}


def kinds(caught: ast.expr | None) -> set[str]:
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return {getattr(each, "id", getattr(each, "attr", "")) for each in parts}


def bare(tree: ast.AST) -> Iterator[int]:
    """Lines at which a sentence holds an error, of a kind that may say nothing, as it is."""
    for caught in ast.walk(tree):
        if isinstance(caught, ast.ExceptHandler) and kinds(caught.type) & WORDLESS:
            for part in ast.walk(caught):
                held = part.value if isinstance(part, ast.FormattedValue) else None
                if isinstance(held, ast.Name) and held.id == caught.name:
                    yield held.lineno


def test_an_error_that_may_say_nothing_ends_no_sentence() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "app").rglob("*.py"))
        for line in bare(ast.parse(path.read_text("utf-8")))
    ]
    assert found == [], "say it by `cause_of` or `named`"
