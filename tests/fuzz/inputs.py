"""What a fuzzed input means as a record.

Its first byte says which parts follow, each with its length in two bytes.

    bit 0  a key        bit 1  a value        bits 2-3  number of headers (name, then value)
"""

from __future__ import annotations

from belfry.wire.record import Headers
from tests.fuzz.engine_door import EngineDoor


class Parts:
    """Takes an input apart; where it ends, parts are empty."""

    def __init__(self, data: bytes) -> None:
        self._data = data[1:]
        self.shape = data[0] if data else 0

    @property
    def left(self) -> bool:
        """Whether there is anything of it left."""
        return bool(self._data)

    def take(self) -> bytes:
        """The next part."""
        size = int.from_bytes(self._data[:2], "big")
        part, self._data = self._data[2 : 2 + size], self._data[2 + size :]
        return part


def record_of(data: bytes) -> tuple[bytes | None, bytes | None, Headers | None]:
    """Key, value and headers of the record that an input stands for."""
    parts = Parts(data)
    key = parts.take() if parts.shape & 1 else None
    value = parts.take() if parts.shape & 2 else None
    headers: Headers = []
    for _ in range(parts.shape >> 2 & 3):
        name = parts.take().decode(errors="replace")
        headers.append((name, parts.take()))
    return key, value, headers or None


def headers_of(data: bytes) -> Headers:
    """Names and values with a zero byte between them, behind those that make it a request."""
    parts = data.split(b"\0")
    given: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"a")]
    for name, value in zip(parts[::2], parts[1::2], strict=False):
        given.append((name.decode(errors="replace"), value))
    return given


def one_input(data: bytes) -> None:
    """One record into a new engine, one verdict; it then still takes a request that is fine."""
    door = EngineDoor()
    door(*record_of(data))
    door.end()
