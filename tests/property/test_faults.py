"""Whatever fails amid some schedules, the others fire the same events as if those were not there.

Faults are planted where requests are carried out and where rows fire, in half of the cases behind
what the step has done by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from belfry.engine.fires import Fires
from belfry.engine.transitions import Transitions
from tests.unit.engine.driver import T0, Driver

Asked = dict[str, Any]
LATE: Final = ("FIRE_ONCE", "FIRE_ALL", "SKIP")
# Late by nothing, by a little, by much; then on and on, for what catches up has a rate.
INSTANTS: Final = (T0 + 400, T0 + 3_000, T0 + 9_000, *range(T0 + 90_000, T0 + 95_000, 500))


def drawn(random: Random) -> Asked:
    """A schedule that fires once or several times, perhaps in a group."""
    asked: Asked = {"at": T0 + random.choice([1, 2, 300, random.randrange(1, 80_000)])}
    if random.random() < 0.5:
        asked = {
            "kind": "EVERY",
            "interval_ms": random.choice([70, 900, 20_000]),
            "start_at": T0 + random.randrange(1, 3_000),
            "max_fires": random.choice([1, 4, 9]),
            "jitter_ms": random.choice([None, 90]),
            "misfire": random.choice(LATE),
            "max_lateness_ms": random.choice([0, 30, 100_000]),
        }
    if random.random() < 0.3:
        asked |= {"group": random.choice("gh"), "misfire": None}
    return asked


def plant(
    monkeypatch: pytest.MonkeyPatch,
    name_of: Callable[..., bytes],
    faulty: frozenset[bytes],
    owner: Any,
    name: str,
    *,
    behind: bool,
) -> None:
    """Let a function raise for the faulty ones, `behind` all that it does or before it."""
    sound = getattr(owner, name)

    def planted(*given: Any, **named: Any) -> Any:
        is_faulty = name_of(*given) in faulty
        done = sound(*given, **named) if behind or not is_faulty else None
        if is_faulty:
            raise KeyError(name)
        return done

    monkeypatch.setattr(owner, name, planted)


def fired(asked: dict[str, Asked], at_most: int) -> Counter[tuple[str, bytes | None]]:
    """The events that fire of these schedules: id and instant of each."""
    driver = Driver()
    for number, (name, fields) in enumerate(asked.items()):
        driver.ask(schedule_id=name, **fields)
        if number % 7 == 6:
            driver.step(T0, fire=False)
    driver.step(T0, fire=False)
    found: Counter[tuple[str, bytes | None]] = Counter()
    for now_ms in INSTANTS:
        while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
            step = driver.step(now_ms, at_most, take=0)
            found.update((shot.id, shot.header("belfry-scheduled-at")) for shot in step.shots)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_others_fire_as_ever(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    asked = {f"s{number}": drawn(random) for number in range(30)}
    faulty = frozenset(name for name in asked if random.random() < 0.3)
    at_most = random.choice([2, 7, 1_000])
    wanted = fired({name: each for name, each in asked.items() if name not in faulty}, at_most)
    names = frozenset(name.encode() for name in faulty)
    behind = bool(seed % 2)
    if seed % 3:
        for name in ("fire", "fire_once"):
            plant(monkeypatch, lambda _, row, *__: row[11], names, Fires, name, behind=behind)
    else:
        of_request = frozenset(b"demo/" + name for name in names)
        plant(
            monkeypatch,
            lambda _, asked, __: asked.name,
            of_request,
            Transitions,
            "begin",
            behind=behind,
        )
        monkeypatch.setattr("belfry.engine.fast_path.MOST_OVERHEAD_BYTES", 1 << 40)
    found = fired(asked, at_most)
    assert found == wanted
