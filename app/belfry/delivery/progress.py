"""How far a partition of the topic of deliveries has got, where records end out of order.

A position alone would have to wait for the slowest post.  So ended deliveries beyond it are kept
beside it, as the metadata of the committed offset: a bit for each offset, packed. The next owner of
the partition goes on from the position and leaves out the ended ones.

    offset    10  11  12  13  14  15           position 12: 10 and 11 have ended
    ended      ×   ×       ×       ×           metadata: 13 and 15 have, 12 and 14 have not

Ends of transactions take offsets as well, which no reader gets.  The position passes over them, so
if retention has removed the records before an offset, all offsets from the position up to there
count as *removed*: records that no dispatcher has come to, and the ends of their transactions.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from binascii import Error as BinasciiError
from collections import deque
from typing import Final

# Kafka takes 4 096 bytes of metadata: in the worst case a bit for each offset, in base 64.
SPAN: Final = 20_000
MOST_METADATA: Final = 4_096


class DeliveryPosition:
    """One partition's position, and the ended deliveries beyond it."""

    def __init__(self, position: int, metadata: str = "", *, kept: bool = True) -> None:
        """Go on from a committed position; offsets that had ended are not `fresh`.

        `kept` is False if the group has none yet, so that removed records cannot be counted.
        """
        self.position, self.kept = position, kept
        # Offsets that were removed before they had ended, until somebody has told of them.
        self.removed = 0
        self._read_to = position
        self._former = _offsets(position, metadata)
        self._taken: deque[int] = deque()
        self._ended: set[int] = set()

    def fresh(self, offset: int) -> bool:
        """Whether the record at this offset is to be worked on; asked for each once, in order."""
        self._taken.append(offset)
        if offset in self._former:
            self._ended.add(offset)
            self._advance()
            return False
        return True

    def ended(self, offset: int) -> None:
        """The work on this record is done, and its follow-up records are being written."""
        self._ended.add(offset)
        self._advance()

    def read_to(self, offset: int) -> bool:
        """No record lies between the last taken one and this offset; whether the position moves."""
        before = self.position
        self._read_to = max(self._read_to, offset)
        self._advance()
        return self.position > before

    def kept_from(self, offset: int) -> None:
        """No record is left before this offset: go on there, and count those that had not ended."""
        if offset > self.position:
            ended = sum(each < offset for each in self._former)
            self.removed += offset - self.position - ended
            self._former = {each for each in self._former if each >= offset}
            self.position = self._read_to = offset

    def told(self) -> int:
        """How many offsets were removed; it is committed, so from now on they were told of."""
        removed, self.removed, self.kept = self.removed, 0, True
        return removed

    @property
    def full(self) -> bool:
        """Whether the next records would lie too far beyond the position."""
        return bool(self._taken) and self._taken[-1] - self._taken[0] >= SPAN

    def done_with(self, offset: int) -> bool:
        """Whether the record at this offset had ended when the position was committed."""
        return offset < self.position or offset in self._former

    def metadata(self) -> str:
        """The ended deliveries beyond the position, as text for the committed offset."""
        further = self._ended | {each for each in self._former if each > self.position}
        if not further:
            return ""
        bits = bytearray((max(further) - self.position) // 8 + 1)
        for offset in further:
            place = offset - self.position
            bits[place // 8] |= 1 << place % 8
        packed = min(b"\0" + bytes(bits), b"\1" + zlib.compress(bits, 1), key=len)
        return b64encode(packed).decode()

    def _advance(self) -> None:
        taken, ended = self._taken, self._ended
        while taken and taken[0] in ended:
            offset = taken.popleft()
            ended.discard(offset)
            self._former.discard(offset)
            self.position = offset + 1
        # The offsets passed over meanwhile are ends of transactions.
        self.position = max(self.position, taken[0] if taken else self._read_to)


def _offsets(position: int, metadata: str) -> set[int]:
    """The offsets in a committed offset's metadata; empty if this version cannot read it."""
    try:
        packed = b64decode(metadata, validate=True)
        bits = packed[1:] if packed[:1] == b"\0" else zlib.decompress(packed[1:])
    except (BinasciiError, ValueError, zlib.error):
        return set()
    return {
        position + 8 * number + place
        for number, byte in enumerate(bits)
        for place in range(8)
        if byte >> place & 1
    }
