"""Unpacks the bytes behind the head of a record batch, as a stream.

    packed, up to some megabytes ──► 256 KiB ──► 256 KiB ──► …   each taken before the next is made

A megabyte of zstd or gzip may unpack to a gigabyte, and six thousand bytes to more than a hundred
megabytes. So memory does not grow with the unpacked size: a caller takes as many parts as it wants,
and other parts are never made.

A zstd frame says how far back it refers, and a decoder keeps that many bytes: at most
`MOST_WINDOW_BYTES`, as RFC 8878 recommends; levels up to 19 need no more. Lz4 and snappy, which
unpack to at most 255 and 22 times their size, are unpacked block by block (`unpacking_blocks.py`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import cramjam
import zstandard

from belfry.kafka.unpacking_blocks import DamagedBlock, unlz4, unsnappy
from belfry.wire.record_stream import Unreadable

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
# Bytes of one part of zstd and gzip, and of zstd's longest reference back.
CHUNK_BYTES: Final = 256 * 1024
MOST_WINDOW_BYTES: Final = 8 * 1024 * 1024
_NAMES: Final = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
# The libraries' errors for bytes that they cannot unpack.
_BROKEN: Final = (
    DamagedBlock,
    zlib.error,
    zstandard.ZstdError,
    cramjam.DecompressionError,
    struct.error,
    IndexError,
)
# zlib's value for: either head is taken.
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


def chunks_of(
    codec: int, packed: memoryview, window_bytes: int = MOST_WINDOW_BYTES
) -> Iterator[bytes | memoryview]:
    """The unpacked bytes, bit by bit; Unreadable if they cannot be unpacked.

    Frames of zstd may refer back by `window_bytes`.
    """
    try:
        if codec == ZSTD:
            yield from _unzstd(packed, window_bytes)
        elif codec == GZIP:
            yield from _gunzip(packed)
        elif codec == NONE:
            yield packed
        elif codec == LZ4:
            yield from unlz4(packed)
        elif codec == SNAPPY:
            yield from unsnappy(packed)
        else:
            raise Unreadable(f"codec {codec} is unknown")
    except _BROKEN as error:
        raise Unreadable(f"it cannot be unpacked as {_NAMES[codec]}: {error}") from None


def _unzstd(packed: memoryview, window_bytes: int) -> Iterator[bytes]:
    """Parts of zstd frames; a frame that refers too far back raises."""
    decoder = zstandard.ZstdDecompressor(max_window_size=window_bytes)
    with decoder.stream_reader(packed, read_across_frames=True) as reader:
        while part := reader.read(CHUNK_BYTES):
            yield part


def _gunzip(packed: memoryview) -> Iterator[bytes]:
    """Parts of one gzip stream after another (RFC 1952), each at most `CHUNK_BYTES`."""
    rest: bytes | memoryview = packed
    while rest:
        decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
        while not decoder.eof:
            # Fed in small pieces: each call copies the bytes that are not used yet.
            piece, rest = rest[:CHUNK_BYTES], rest[CHUNK_BYTES:]
            if not piece:
                raise zlib.error("it ends too early")
            while True:
                part = decoder.decompress(piece, CHUNK_BYTES)
                if part:
                    yield part
                piece = decoder.unconsumed_tail
                # Behind a full part there may be more output, even if no input is left.
                if not piece and len(part) < CHUNK_BYTES:
                    break
        rest = decoder.unused_data + bytes(rest)
