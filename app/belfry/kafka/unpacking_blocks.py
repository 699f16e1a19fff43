"""Unpacks lz4 and snappy piece by piece; `unpacking.py` does the same for zstd and gzip.

lz4 comes in frames of blocks of at most 4 MiB, which stand alone: a broker refuses others. Snappy
has two forms. Java's clients send blocks of 32 KiB behind a head of 16 bytes. librdkafka sends one
block, which has its unpacked size. A large block is cut at the end of one of its elements: each
piece is unpacked behind the 64 KiB before it, which is as far back as snappy's compressors refer.

    elements │ literal │ copy 64 from 64 back │ copy 64 from 64 back │ … │ literal │
             └──── a piece: 1 MiB unpacked ────┘└──── the next, behind the last 64 KiB ────
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import cramjam

LZ4_MAGIC: Final = 0x184D2204
XERIAL: Final = b"\x82SNAPPY\0"
# A block of snappy that unpacks to at most this size is unpacked as a whole.
WHOLE_BYTES: Final = 1024 * 1024
_XERIAL_HEAD: Final = 16
_BACK_BYTES: Final = 64 * 1024
_NUMBER: Final = struct.Struct("<I")
_BLOCK: Final = struct.Struct(">i")
# Largest unpacked block, by the number in a frame's head (LZ4 frame format 1.6).
_LZ4_SIZES: Final = {4: 64 * 1024, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}
# Bits of a frame's flags: the version, blocks that stand alone, and optional fields.
_VERSION, _ALONE, _BLOCK_SUM, _SIZE, _SUM, _DICTIONARY = 0xC0, 0x20, 0x10, 0x08, 0x04, 0x01
# A block whose length has this bit is not packed.
_STORED: Final = 0x80000000


class DamagedBlock(ValueError):
    """Bytes that cannot be unpacked."""


def unlz4(packed: memoryview) -> Iterator[bytes | memoryview]:
    """The bytes in frames of lz4, block by block; DamagedBlock if they are not such frames.

    A frame is a head (magic, flags, largest block, perhaps the size, a checksum), blocks, each
    behind its length, a length of 0, and perhaps a checksum. Checksums are not checked. A block
    unpacks to at most 4 MiB.
    """
    at = 0
    while at < len(packed):
        if len(packed) - at < 7 or _NUMBER.unpack_from(packed, at)[0] != LZ4_MAGIC:
            raise DamagedBlock("no frame begins where one should")
        flags, most = packed[at + 4], _LZ4_SIZES.get(packed[at + 5] >> 4 & 7)
        if flags & _VERSION != 0x40 or flags & _DICTIONARY or not flags & _ALONE or most is None:
            raise DamagedBlock("a frame has blocks that Kafka does not take")
        at += 15 if flags & _SIZE else 7
        while size := _NUMBER.unpack_from(packed, at)[0]:
            end = at + 4 + (size & ~_STORED)
            if end > len(packed):
                raise DamagedBlock("it ends too early")
            block = packed[at + 4 : end]
            yield block if size & _STORED else _unlz4_block(block, most)
            at = end + (4 if flags & _BLOCK_SUM else 0)
        at += 8 if flags & _SUM else 4


def _unlz4_block(block: memoryview, most: int) -> bytes:
    """One block, which unpacks to at most `most` bytes."""
    room = bytearray(most)
    return bytes(memoryview(room)[: cramjam.lz4.decompress_block_into(block, room, most)])


def unsnappy(packed: memoryview) -> Iterator[bytes]:
    """The bytes that snappy packed, in either form; DamagedBlock for other bytes.

    Each part has about a megabyte at most, or is one element if that is larger.
    """
    if bytes(packed[: len(XERIAL)]) != XERIAL:
        yield from _unsnappy_block(packed)
        return
    at = _XERIAL_HEAD
    while at < len(packed):
        end = at + 4 + _BLOCK.unpack_from(packed, at)[0]
        if not at + 4 < end <= len(packed):
            raise DamagedBlock("a block has no end")
        yield from _unsnappy_block(packed[at + 4 : end])
        at = end


def _unsnappy_block(block: memoryview) -> Iterator[bytes]:
    """One block of snappy; a large one in pieces of about a megabyte."""
    size, at = _length(block)
    if size <= WHOLE_BYTES:
        yield bytes(cramjam.snappy.decompress_raw(block))
        return
    before, made = b"", 0
    while at < len(block):
        begin = at
        at, piece_bytes = _piece(block, at)
        piece = _prefixed(before, piece_bytes) + bytes(block[begin:at])
        part = bytes(cramjam.snappy.decompress_raw(piece))[len(before) :]
        yield part
        made += len(part)
        before = (before + part)[-_BACK_BYTES:]
    if made != size:
        raise DamagedBlock(f"it unpacks to {made} bytes, and says {size}")


def _length(block: memoryview) -> tuple[int, int]:
    """The unpacked size of a block, and the begin of its elements."""
    size = 0
    for at in range(min(5, len(block))):
        size |= (block[at] & 0x7F) << 7 * at
        if block[at] < 0x80:
            return size, at + 1
    raise DamagedBlock("its length has no end")


def _piece(block: memoryview, at: int) -> tuple[int, int]:
    """The end of a piece: of elements that unpack to about a megabyte; and their unpacked size.

    An element is a literal or a copy: the last two bits of its first byte, the tag, say which
    (snappy's format description). Nothing is unpacked here.
    """
    end, made = len(block), 0
    while at < end and made < WHOLE_BYTES:
        tag = block[at]
        kind = tag & 3
        if kind == 1:
            made += (tag >> 2 & 7) + 4
            at += 2
        elif kind:
            made += (tag >> 2) + 1
            at += 3 if kind == 2 else 5
        else:
            size, at = tag >> 2, at + 1
            if size >= 60:
                more = size - 59
                size = int.from_bytes(block[at : at + more], "little")
                at += more
            made += size + 1
            at += size + 1
    if at > end:
        raise DamagedBlock("it ends in the middle of an element")
    return at, made


def _prefixed(before: bytes, more: int) -> bytes:
    """The beginning of a block that unpacks to `before`, and then to so many bytes.

    It is the length as a varint, and a literal that holds `before`: so copies among the elements
    behind it find the bytes that they refer to.
    """
    size, head = len(before) + more, bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    if before:
        head += bytes((62 << 2,)) + (len(before) - 1).to_bytes(3, "little") + before
    return bytes(head)
