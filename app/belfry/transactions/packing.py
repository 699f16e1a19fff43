"""Compression of a finished record batch: the codecs, and the levels that producers use.

aiokafka's builder packs like a broker, with lz4 at level 9: that takes ten times as long and saves
one byte in a hundred. So batches are built unpacked, and packed here:

     0        8        12         17    21           23         61
     offset   length   …   crc of what follows   attributes  …  records (packed)
              └ counts from 12                   └ the codec in the lowest three bits
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from aiokafka import codec as codecs
from aiokafka.record.util import calc_crc32c

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS: Final = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
_PACK: Final[dict[int, Callable[[Any], bytes]]] = {
    GZIP: partial(codecs.gzip_encode, compresslevel=6),
    SNAPPY: codecs.snappy_encode,
    LZ4: partial(codecs.lz4_encode, level=1),
    ZSTD: partial(codecs.zstd_encode, level=1),
}
# Offsets of fields in a record batch (message format v2), in bytes; numbers are big-endian.
_LENGTH_AT: Final = 8
_LENGTH_ENDS: Final = 12
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
_RECORDS_AT: Final = 61
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
# offset, length, epoch of the leader, magic, checksum
_BEFORE_ATTRIBUTES: Final = struct.Struct(">qiibI")
# attributes, number of the last record, first and last time, producer, epoch, sequence, records
_BEHIND_CRC: Final = struct.Struct(">hiqqqhii")
_TRANSACTIONAL: Final = 16
_NO_LEADER: Final = -1
_MAGIC: Final = 2


def packed(batch: bytearray, codec: int) -> bytearray:
    """The batch with its records packed; unchanged if that would not make it smaller.

    `batch` is finished and unpacked. Length, attributes and checksum (CRC-32C, RFC 3720) are set
    anew.
    """
    if codec == NONE:
        return batch
    records = _PACK[codec](bytes(memoryview(batch)[_RECORDS_AT:]))
    if len(records) >= len(batch) - _RECORDS_AT:
        return batch
    found = batch[:_RECORDS_AT] + records
    found[_ATTRIBUTES_AT + 1] |= codec
    _LENGTH.pack_into(found, _LENGTH_AT, len(found) - _LENGTH_ENDS)
    _CRC.pack_into(found, _CRC_AT, calc_crc32c(memoryview(found)[_ATTRIBUTES_AT:]))
    return found


def batch_of(
    records: bytes, count: int, now_ms: int, writer: tuple[int, int, int], codec: int
) -> bytearray:
    """A finished batch of so many records, packed if that makes it smaller.

    `writer` is the producer, its epoch, and the sequence of the first record. All records have one
    time, epoch ms. The leader assigns offsets.
    """
    attributes = _TRANSACTIONAL
    if codec != NONE:
        smaller = _PACK[codec](records)
        if len(smaller) < len(records):
            records, attributes = smaller, attributes | codec
    size = _RECORDS_AT + len(records)
    # One buffer, so that the records are copied once.
    batch = bytearray(size)
    batch[_RECORDS_AT:] = records
    told = attributes, count - 1, now_ms, now_ms, *writer, count
    _BEHIND_CRC.pack_into(batch, _ATTRIBUTES_AT, *told)
    checked = calc_crc32c(memoryview(batch)[_ATTRIBUTES_AT:])
    _BEFORE_ATTRIBUTES.pack_into(batch, 0, 0, size - _LENGTH_ENDS, _NO_LEADER, _MAGIC, checked)
    return batch


def codec_of(properties: Mapping[str, Any]) -> str:
    """The codec that librdkafka's properties name; ValueError if it is not among `CODECS`."""
    given = properties.get("compression.type") or properties.get("compression.codec")
    if not given:
        return "none"
    codec = str(given).lower()
    if codec not in CODECS:
        raise ValueError(f"compression.type is {given}: {', '.join(CODECS)} are allowed.")
    return codec
