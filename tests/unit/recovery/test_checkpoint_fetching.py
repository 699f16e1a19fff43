"""Files of a checkpoint come two at a time, and an error leaves nobody at work."""

from __future__ import annotations

import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from belfry.recovery.checkpoint_fetching import AT_ONCE, fetched
from belfry.store.checkpoint import BadCheckpoint, CheckpointFile

COUNT = 7
CONTENTS = {f"{number:06d}.sst": b"%d" % number * 1_000 for number in range(COUNT)}


def checkpoint() -> Any:
    files = tuple(
        CheckpointFile(name, len(content), sha256(content).hexdigest())
        for name, content in CONTENTS.items()
    )

    class Found:
        def __init__(self) -> None:
            self.files, self.size = files, sum(each.size for each in files)

    return Found()


class Place:
    """Where files come from; it counts how many are on their way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begun = list[str]()
        self.now = self.most = 0

    def bring(self, file: CheckpointFile, to: Path) -> None:
        with self.lock:
            self.begun.append(file.name)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            self.come(file, to)
        finally:
            with self.lock:
                self.now -= 1

    def come(self, file: CheckpointFile, to: Path) -> None:
        time.sleep(0.02)
        to.write_bytes(CONTENTS[file.name])


def fetch(place: Place, home: Path) -> int:
    return fetched(place.bring, checkpoint(), home / "to", home / "own", lambda _size: None)


def test_one_comes_while_the_other_is_compared(tmp_path: Path) -> None:
    place = Place()
    assert fetch(place, tmp_path) == sum(map(len, CONTENTS.values()))
    assert place.most == AT_ONCE == 2
    assert sorted(place.begun) == sorted(CONTENTS)
    assert {each.name: each.read_bytes() for each in (tmp_path / "to").iterdir()} == CONTENTS


def test_a_single_one_comes_in_the_thread_that_asks(tmp_path: Path) -> None:
    first = Place()
    fetch(first, tmp_path)
    name = next(iter(CONTENTS))
    (tmp_path / "to" / name).unlink()
    asked_by = list[str]()

    class Last(Place):
        def come(self, file: CheckpointFile, to: Path) -> None:
            asked_by.append(threading.current_thread().name)
            super().come(file, to)

    assert fetch(Last(), tmp_path) == len(CONTENTS[name])
    assert asked_by == [threading.current_thread().name]


@pytest.mark.parametrize("wrong", ["other bytes", "an error"])
def test_after_an_error_none_is_begun_and_none_is_on_its_way(tmp_path: Path, wrong: str) -> None:
    class Hurt(Place):
        def come(self, file: CheckpointFile, to: Path) -> None:
            if file.name != min(CONTENTS):
                # It is on its way when the first one fails.
                time.sleep(0.2)
                to.write_bytes(CONTENTS[file.name])
            elif wrong == "an error":
                raise ConnectionError("gone")
            else:
                to.write_bytes(b"x" * file.size)

    place = Hurt()
    with pytest.raises(BadCheckpoint if wrong == "other bytes" else ConnectionError):
        fetch(place, tmp_path)
    assert place.now == 0
    assert len(place.begun) <= AT_ONCE
    # The one that was whole is used by the next try.
    again = Place()
    fetch(again, tmp_path)
    assert {each.name: each.read_bytes() for each in (tmp_path / "to").iterdir()} == CONTENTS
    assert len(again.begun) < COUNT or len(place.begun) == 1
