"""Doors of files that lie outside: in an object store, on another worker's disk.

indexes    the index of a checkpoint, whose proof is true or not: a checkpoint, or why it is none
dayfiles   a day file, and what stands for a payload in a row: entries, or why there are none
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from struct import Struct
from typing import Final

from belfry.store import checkpoint
from belfry.store.checkpoint import BadCheckpoint, IndexKeys, decode_index, encode_index
from belfry.store.layout import day_files
from belfry.store.layout.day_files import NoDayFile, encode_file, read_file
from belfry.store.layout.day_reference import decode_reference, size_in, stands_for

Input = Callable[[bytes], None]
PLAIN: Final = IndexKeys()
SIGNED: Final = IndexKeys((b"a secret of a door",), signs=True, required=True)
_ENTRY: Final = Struct(">HI")


def indexes() -> Input:
    """Where the first byte is even the whole index; else what follows a head with a true proof."""
    return one_index


def one_index(data: bytes) -> None:
    """A checkpoint that says the same when it is written again, or BadCheckpoint."""
    by = SIGNED if data and data[0] & 2 else PLAIN
    index = data[1:]
    if data and data[0] & 1:
        how = b"signed" if by.signs else b"plain"
        key = by.keys[0] if by.signs else b""
        index = b"belfry-checkpoint 1 %b %b\n%b" % (how, checkpoint._proof(index, key), index)
    try:
        found = decode_index(index, by)
    except BadCheckpoint:
        return
    assert decode_index(encode_index(found, by), by) == found
    for each in found.files:
        assert "/" not in each.name
        assert each.name not in (".", "..")


def dayfiles() -> Input:
    """Where the first byte is odd, entries behind a head that fits them."""
    return one_dayfile


def one_dayfile(data: bytes) -> None:
    """Entries that make the same file again, or NoDayFile; a reference, or a ValueError."""
    with suppress(ValueError):
        decode_reference(data)
    assert stands_for(data, b"") in (True, False)
    assert size_in(data) >= 0
    whole = headed(data[1:]) if data and data[0] & 1 else data
    try:
        entries = read_file(whole)
    except NoDayFile:
        return
    again, offsets = encode_file((each.name, each.payload) for each in entries)
    assert again == whole
    assert offsets == [each.offset for each in entries]


def headed(entries: bytes) -> bytes:
    """The same behind the digest of its sizes and names."""
    at, index = 0, blake2b(digest_size=16)
    while at + _ENTRY.size <= len(entries):
        name, payload = _ENTRY.unpack_from(entries, at)
        behind = at + _ENTRY.size + name
        index.update(entries[at:behind])
        at = behind + payload
    return day_files.MAGIC + index.digest() + entries
