"""PNGs of a browser made small: a page of text has few colours, so one byte a pixel is enough.

Chromium writes three bytes a pixel and filters that suit photographs.  Here each pixel becomes an
index into a palette of at most 256 colours: those that occur, with fewer bits where they are more.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
BYTES: Final = 3
MOST: Final = 256


def small(png: bytes) -> bytes:
    """The same picture with a palette; takes an RGB picture of 8 bits without interlacing."""
    header, data = b"", b""
    for kind, body in _chunks(png):
        header = body if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
    width, height, *form = struct.unpack(">IIBBBBB", header)
    assert form == [8, 2, 0, 0, 0], form
    raw = _unfiltered(zlib.decompress(data), width * BYTES, height)
    places, palette = _palette(raw)
    rows = b"".join(b"\0" + places[y * width : (y + 1) * width] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(*part) for part in parts)


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], len(SIGNATURE)
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        found.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _unfiltered(data: bytes, width: int, height: int) -> bytes:
    """The bytes of all pixels; `width` in bytes (PNG specification, chapter 9)."""
    above, rows = bytearray(width), []
    for y in range(height):
        kind, *line = data[y * (width + 1) : (y + 1) * (width + 1)]
        row = bytearray(line)
        for x in range(width) if kind else ():
            left = row[x - BYTES] if x >= BYTES else 0
            corner = above[x - BYTES] if x >= BYTES else 0
            row[x] = (row[x] + _predicted(kind, left, above[x], corner)) & 255
        rows.append(bytes(row))
        above = row
    return b"".join(rows)


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 2:
        return up
    if kind == 3:
        return (left + up) // 2
    guess = left + up - corner
    by_left, by_up, by_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
    if by_left <= by_up and by_left <= by_corner:
        return left
    return up if by_up <= by_corner else corner


def _palette(raw: bytes) -> tuple[bytes, bytes]:
    """An index for each pixel, and the colours that they stand for."""
    pixels = [raw[at : at + BYTES] for at in range(0, len(raw), BYTES)]
    for bits in range(8):
        step = 1 << bits
        shown = {
            each: bytes(min(255, (c + step // 2) // step * step) for c in each)
            for each in set(pixels)
        }
        colours = sorted(set(shown.values()))
        if len(colours) <= MOST:
            break
    index = {colour: n for n, colour in enumerate(colours)}
    return bytes(index[shown[each]] for each in pixels), b"".join(colours)
