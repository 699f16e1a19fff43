"""A worker's rooms take threads, time and clients by doors, so that a simulator can be there.

A name that is imported from where it is made would pass the simulator by, in silence: the room
would then wait in real time, or for a cluster that does not exist.  Such a name may stand in
annotations alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.seams import DOORS

BELFRY: Final = Path(__file__).parents[2] / "app" / "belfry"
ROOMS: Final = (
    *("group", "host", "kafka", "outputs", "partitions", "policies", "process", "recovery"),
    "transactions",
)
# What of deliveries the simulator plays: its posts go to targets of its own.
DELIVERS: Final = (
    *("attempts", "delivery_log", "dispatcher", "http_sender", "kinds/kafka", "log_clients"),
    *("settling", "under_way"),
)
# Faust lives on an event loop of its own, and the simulator has its own group; what a test makes
# late or holds is real time.
SPARED: Final = ("group/membership.py", "process/worker.py", "host/failpoints.py", "host/clock.py")
# Where the names of doors come from, apart from the doors themselves.
MAKERS: Final = ("queue", "threading", "time", "confluent_kafka", "confluent_kafka.admin")
NAMES: Final = {name for _, name, _ in DOORS}


def shell() -> list[Path]:
    """The modules that the simulator plays."""
    found = [each for room in ROOMS for each in sorted((BELFRY / room).rglob("*.py"))]
    doors = {Path(str(module.__file__)) for module, _, _ in DOORS}
    spared = {BELFRY / each for each in SPARED}
    alone = (BELFRY / "assembly.py", *(BELFRY / f"delivery/{each}.py" for each in DELIVERS))
    return [*alone, *(each for each in found if each not in doors | spared)]


def past(source: str) -> list[str]:
    """What a module takes past the doors, with its lines."""
    tree = ast.parse(source)
    modules = {module.__name__ for module, _, _ in DOORS}
    taken = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in {*MAKERS, *modules}
        for alias in node.names
        if alias.name in NAMES
    }
    whole = [
        f"import {alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in {"queue", "threading", "time"}
    ]
    annotated = {id(name) for each in _annotations(tree) for name in ast.walk(each)}
    return whole + [
        f"line {node.lineno}: {node.id}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in taken and id(node) not in annotated
    ]


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if (found := getattr(node, field, None)) is not None:
                yield found


def test_a_room_goes_by_the_doors() -> None:
    found = {str(path.relative_to(BELFRY)): past(path.read_text()) for path in shell()}
    assert found
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from threading import Lock\nguard = Lock()",
        "from time import monotonic as now\nbegan = now()",
        "import time\ntime.sleep(1)",
        "from belfry.host.rocks import RocksMap\nstore = RocksMap(path)",
        "from confluent_kafka import Consumer\ndef ask(connect=Consumer): ...",
    ],
)
def test_what_goes_past_a_door_is_seen(source: str) -> None:
    assert past(source)


def test_an_annotation_goes_past_none() -> None:
    assert past("from threading import Event\ndef wait(event: Event) -> Event: ...") == []
