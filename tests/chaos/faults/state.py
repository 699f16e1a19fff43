"""Local state that is gone, damaged, stale or somebody else's, and an older copy of it.

One worker is let own everything for a moment, so that each partition has a state to be hurt, and
whoever starts on it afterwards meets the harm for certain.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any, Final

from rocksdict import Options, Rdict

from tests.acceptance.harness.site import wait_for
from tests.chaos.scene import Scene

# As the store's page specifies them: what a store belongs to, and what it is the fold of.
STAMP: Final = b"mstamp"
STATE: Final = b"mstate"
OFFSET_AND_WRITTEN: Final = Struct(">qq")
# So many come out before the worker that has lost its directories ends.
REMOVED_FIRES: Final = 200
THIRTEEN_HOURS_MS: Final = 13 * 3_600_000


def four_harms(scene: Scene) -> str:
    """A partition's state is lost, one is damaged, one is stale, and one is another cluster's."""
    data = _all_to_the_victim(scene)
    lost, damaged, stale, foreign = (data / f"partition-{number}" for number in range(4))
    assert any(lost.iterdir())
    shutil.rmtree(lost)
    flips = sum(_flip(table) for table in damaged.glob("*.sst"))
    assert flips, "there was no table to damage"
    _rewrite(stale, STATE, _aged)
    _rewrite(foreign, STAMP, lambda stamp: stamp.replace(b'",', b'x",', 1))
    told = _told_of_all(scene, damaged.name, stale.name, foreign.name)
    return f"{lost.name} lost; set aside: {', '.join(told)}"


def older_copy(scene: Scene) -> str:
    """The whole directory is replaced by a copy that is some transactions old."""
    data = _all_to_the_victim(scene)
    old = data.with_name("older")
    shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(data, old)
    offset = _offset(old / "partition-0")
    scene.victim.start()
    scene.wait_victim_has_all()
    before = scene.fired_count()
    wait_for("transactions that the copy lacks", lambda: scene.fired_count() > before + 50, 60)
    assert scene.victim.stop() == 0, scene.victim.tail()
    lacks = _offset(data / "partition-0") - offset
    assert lacks > 0
    shutil.rmtree(data)
    old.rename(data)
    scene.victim.start()
    scene.wait_victim_has_all()
    scene.steady.start()
    scene.wait_calm()
    return f"a copy that lacked {lacks} offsets of partition 0"


def removed(scene: Scene) -> str:
    """The directories of all partitions are deleted under the worker that has them open."""
    gone = _open_folders(scene)
    assert gone, "the victim has no state to delete"
    for each in gone:
        shutil.rmtree(each)
    _fire_and_restart(scene)
    return f"{len(gone)} directories went while they were open"


def swapped(scene: Scene) -> str:
    """The directories of two partitions change places under the worker that has them open."""
    folders = _open_folders(scene)
    first, second = folders[0], folders[-1]
    assert first != second, "the victim has one state only"
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    _fire_and_restart(scene)
    return f"{first.name} and {second.name} changed places"


def _open_folders(scene: Scene) -> list[Path]:
    """The directories of the partitions that the victim has open."""
    scene.gather()
    return sorted(each for each in scene.victim.data_dir.glob("partition-*") if each.is_dir())


def _fire_and_restart(scene: Scene) -> None:
    """Wait for some fires, then kill the victim, which cannot end in order, and start it again."""
    scene.wait_fires(REMOVED_FIRES)
    scene.victim.kill()
    scene.victim.start()
    scene.wait_calm()


def _all_to_the_victim(scene: Scene) -> Path:
    """Stop the steady worker, then the victim that has got everything; its data directory."""
    scene.gather()
    assert scene.steady.stop() == 0, scene.steady.tail()
    scene.wait_victim_has_all()
    assert scene.victim.stop() == 0, scene.victim.tail()
    return scene.victim.data_dir


def _told_of_all(scene: Scene, *names: str) -> list[str]:
    """Start both again; the reasons for which the victim set these states aside."""
    begin = scene.log_size(scene.victim)
    scene.victim.start()
    scene.wait_victim_has_all()
    lines = [line for line in scene.said(scene.victim, begin).splitlines() if "local state" in line]
    told = [name for name in names if any(f'{name}"' in line for line in lines)]
    assert told == list(names), f"only {told} were noticed: {lines}"
    scene.steady.start()
    scene.wait_calm()
    return told


def _flip(table: Path) -> int:
    """Flip a bit in every kilobyte, so that whatever is read first is wrong."""
    content = bytearray(table.read_bytes())
    places = range(50, len(content), 1024)
    for at in places:
        content[at] ^= 0x10
    table.write_bytes(content)
    return len(places)


def _aged(state: bytes) -> bytes:
    offset, written_ms = OFFSET_AND_WRITTEN.unpack_from(state)
    rest = state[OFFSET_AND_WRITTEN.size :]
    return OFFSET_AND_WRITTEN.pack(offset, written_ms - THIRTEEN_HOURS_MS) + rest


def _offset(folder: Path) -> int:
    with _opened(folder) as rows:
        offset: int = OFFSET_AND_WRITTEN.unpack_from(rows[STATE])[0]
        return offset


def _rewrite(folder: Path, key: bytes, change: Any) -> None:
    with _opened(folder) as rows:
        before = rows[key]
        rows[key] = change(before)
        assert rows[key] != before


@contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    rows = Rdict(str(folder), Options(raw_mode=True))
    try:
        yield rows
    finally:
        rows.close()
