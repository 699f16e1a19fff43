"""Where large payloads go: a store in memory, which the payload store takes for one of fsspec.

    object store    pipe: an object is there whole, or not at all
    file system     pipe_file under another name, then mv; either may fail, or its worker be killed

Which of the two a world has, its seed draws.  The store may be slow, refuse everything for a while,
or answer nothing.  Nothing is ever removed, so `since` says of each object from when on it has been
there: the number of the broker's last record by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from random import Random
from typing import Any, Final

from tests.simulation.broker import Broker
from tests.simulation.stage import here

URL: Final = "memory://payloads"
FOLDER: Final = "payloads"
# How long an answer takes; a step waits for 5 ms itself, and for half a second in all.
SOON_MS: Final = 3.0
LATER_MS: Final = 15.0
SLOW_MS: Final = 900.0


class Objects:
    """The store of one world, with the names of fsspec that a payload store uses."""

    def __init__(self, broker: Broker, random: Random) -> None:
        self._broker, self._random = broker, random
        self._files: dict[str, bytes] = {}
        self.since: dict[str, int] = {}
        self.async_impl = random.random() < 0.5
        self.away_until_ms = self.slow_until_ms = self.silent_until_ms = 0.0
        self.struck: list[str] = []

    # -- what strikes it ---------------------------------------------------------------------------

    def be_away(self, ms: float) -> None:
        """Refuse everything for so long."""
        self.away_until_ms = self._broker.stage.now_ms + ms

    def be_slow(self, ms: float) -> None:
        """Answer late for so long."""
        self.slow_until_ms = self._broker.stage.now_ms + ms

    def be_silent(self, ms: float) -> None:
        """Answer nothing for so long; some of what is asked then fails behind it, some is done."""
        self.silent_until_ms = self._broker.stage.now_ms + ms

    def heal(self) -> None:
        """No more faults."""
        self.away_until_ms = self.slow_until_ms = self.silent_until_ms = 0.0

    # -- what a payload store asks -----------------------------------------------------------------

    def pipe(self, objects: Mapping[str, bytes]) -> None:
        """Put objects, one after the other."""
        for path, payload in objects.items():
            self._ask()
            self._put(path, payload)

    def makedirs(self, _path: str, *, exist_ok: bool) -> None:
        """A folder needs nothing."""
        assert exist_ok

    def pipe_file(self, path: str, payload: bytes) -> None:
        """Write a file; half of it is there while it is written, and where that fails."""
        self._files[path] = payload[: len(payload) // 2]
        self._ask()
        self._put(path, payload)

    def mv(self, path: str, to: str) -> None:
        """Give a file another name."""
        self._ask()
        self._put(to, self._files.pop(path))

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self._files

    def rm_file(self, path: str) -> None:
        """Remove a file."""
        del self._files[path]

    def found(self, tenant: str, digest: str) -> bytes | None:
        """A payload as its consumer finds it: the bytes that have this digest, or None."""
        payload = self._files.get(path_of(tenant, digest))
        whole = payload is not None and sha256(payload).hexdigest() == digest
        return payload if whole else None

    def _put(self, path: str, payload: bytes) -> None:
        self._files[path] = payload
        self.since.setdefault(path, self._broker.order)

    def _ask(self) -> None:
        """One way to the store and back; OSError where it refuses."""
        stage, draw = here(), self._random.random()
        stage.sleep(draw * (SOON_MS if self._random.random() < 0.8 else LATER_MS))
        if stage.now_ms < self.slow_until_ms:
            stage.sleep(self._random.random() * SLOW_MS)
        if (left_ms := self.silent_until_ms - stage.now_ms) > 0:
            stage.sleep(left_ms)
            if draw < 0.5:
                self._fail("store silent")
        if stage.now_ms < self.away_until_ms:
            self._fail("store away")

    def _fail(self, why: str) -> None:
        self.struck.append(why)
        raise OSError(why)


def path_of(tenant: str, digest: str) -> str:
    """Where a payload of a tenant lies."""
    return f"{FOLDER}/{tenant}/{digest[:2]}/{digest}"


def opened(url: str, _options: dict[str, Any], _names: tuple[str, str]) -> tuple[Objects, str]:
    """What stands in for `object_store.opened`: the store of the world whose machine asks."""
    from tests.simulation.machine import machine

    found = machine().objects
    assert url == URL
    assert found is not None
    return found, FOLDER
