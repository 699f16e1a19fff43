"""Checkpoints: the description of a copy of a local store, as an index that proves itself.

A checkpoint is the files of a local store at one offset of the changelog, kept elsewhere.  Its
*index* says whose state that is, how far it goes, and which files it is made of:

    belfry-checkpoint 1 signed 5f0c…       the proof: over all that follows
    {"cluster": "…", "changelog": "…", "partition": 3, "store_format": 2, "offset": 81234,
     "written_ms": …, "transaction": 4711, "pending": 90210, "digest": "…",
     "files": [["000012.sst", 6940976, "<SHA-256>"], …]}

Where workers sign rows of the changelog they sign indexes with the same key.  So somebody who may
write to the store of checkpoints, but has no key, cannot make up a state: an index names each file
by the digest of its content.  A plain proof is only a digest: it shows that the index is whole. It
is believed where an unsigned row would be.

An index that is older than others is no lie: a checkpoint is the fold of a prefix of the changelog,
and its user reads the rest there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, NamedTuple

import orjson

# The longest index that is read: some ten thousand files.
MOST_BYTES: Final = 4_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")
_HEAD: Final = re.compile(rb"belfry-checkpoint 1 (plain|signed) ([0-9a-f]{64})\n")
_PERSON: Final = b"checkpoint"
_INSTANT: Final = 2**62


class BadCheckpoint(ValueError):
    """An index that is not to be used: the message says what is wrong with it."""


class CheckpointFile(NamedTuple):
    """One file of a store: its name there, its size in bytes, and SHA-256 of it in hex digits."""

    name: str
    size: int
    sha256: str


class Checkpoint(NamedTuple):
    """A copy of a partition's store, by what its index says.

    `offset` is the next one of the changelog to read.  `transaction`, `pending` and `digest` are
    those of the last manifest before it: its number, how many schedules wait, and the digest of
    what has fired, in hex digits.  `written_ms` says when the store was written last.
    """

    cluster: str
    changelog: str
    partition: int
    store_format: int
    offset: int
    written_ms: int
    transaction: int
    pending: int
    digest: str
    files: tuple[CheckpointFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(each.size for each in self.files)


class IndexKeys(NamedTuple):
    """By which keys indexes are signed and judged, as rows of the changelog are.

    The first key signs where `signs` says so, and all of them are believed.  `required` takes an
    unsigned index for a stranger's.
    """

    keys: Sequence[bytes] = ()
    signs: bool = False
    required: bool = False


def encode_index(checkpoint: Checkpoint, by: IndexKeys) -> bytes:
    """The index of a checkpoint, signed where workers sign."""
    body = orjson.dumps({**checkpoint._asdict(), "files": list(map(list, checkpoint.files))})
    if by.signs:
        return b"belfry-checkpoint 1 signed %b\n%b" % (_proof(body, by.keys[0]), body)
    return b"belfry-checkpoint 1 plain %b\n%b" % (_proof(body), body)


def decode_index(index: bytes, by: IndexKeys) -> Checkpoint:
    """The content of an index; raises BadCheckpoint if it is not whole, or not to be believed."""
    head = _HEAD.match(index)
    if head is None or len(index) > MOST_BYTES:
        raise BadCheckpoint(
            f"it begins with {index[:24]!r} and has {len(index)} bytes: an index of this release"
            f" begins with b'belfry-checkpoint 1 ' and has {MOST_BYTES} bytes at most"
        )
    _judge(head, index[head.end() :], by)
    try:
        return _checkpoint(orjson.loads(index[head.end() :]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadCheckpoint(f"it cannot be read: {error}") from None


def _judge(head: re.Match[bytes], body: bytes, by: IndexKeys) -> None:
    """Raise BadCheckpoint unless the proof is true, and one that is believed here."""
    how, proof = head.groups()
    if how == b"plain" and by.required:
        raise BadCheckpoint(
            "it is not signed, and BELFRY_CHANGELOG=required believes only what is: it is replaced"
            " by the next checkpoint of a worker that signs"
        )
    keys = by.keys if how == b"signed" else (b"",)
    if not any(compare_digest(proof, _proof(body, key)) for key in keys):
        raise BadCheckpoint(
            "its proof is not true: it was cut short or changed, or signed with a secret that this"
            " worker does not have"
        )


def _proof(body: bytes, key: bytes = b"") -> bytes:
    return blake2b(body, digest_size=32, key=key, person=_PERSON).hexdigest().encode()


def _checkpoint(told: dict[str, Any]) -> Checkpoint:
    """The fields of an index, each of them checked."""
    files = tuple(_file(*each) for each in told["files"])
    if len({each.name for each in files}) != len(files):
        raise ValueError("a file is named twice")
    return Checkpoint(
        _text(told["cluster"]),
        _text(told["changelog"]),
        _number(told["partition"]),
        _number(told["store_format"]),
        _number(told["offset"]),
        _number(told["written_ms"]),
        _number(told["transaction"]),
        _number(told["pending"]),
        _matching(_DIGEST, told["digest"]),
        files,
    )


def _file(name: object, size: object, sha256: object) -> CheckpointFile:
    # A name is one of a file in a folder of belfry's: nothing leads out of it.
    return CheckpointFile(_matching(_NAME, name), _number(size), _matching(_SHA256, sha256))


def _matching(pattern: re.Pattern[str], given: object) -> str:
    if not pattern.fullmatch(_text(given)):
        raise ValueError(f"{given!r} does not match {pattern.pattern}")
    return str(given)


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{given!r} is no text")
    return given


def _number(given: object) -> int:
    if type(given) is not int or not 0 <= given < _INSTANT:
        raise ValueError(f"{given!r} is no number from 0 to 2**62")
    return given
