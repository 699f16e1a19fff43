"""An index of a checkpoint says only what a worker has said, as far as rows prove it as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from belfry.store import checkpoint
from belfry.store.checkpoint import (
    MOST_BYTES,
    BadCheckpoint,
    Checkpoint,
    CheckpointFile,
    IndexKeys,
    decode_index,
    encode_index,
)

FILES = (CheckpointFile("000012.sst", 694, "ab" * 32), CheckpointFile("CURRENT", 16, "0c" * 32))
MADE = Checkpoint("cluster-a", "log-1", 3, 2, 81_234, 1_790_000_000_000, 60, 7, "0d" * 16, FILES)
OURS, THEIRS = b"k" * 32, b"t" * 32
TRUSTED = IndexKeys()
SIGNED = IndexKeys((OURS,), signs=True)
REQUIRED = IndexKeys((OURS,), signs=True, required=True)


@pytest.mark.parametrize("by", [TRUSTED, SIGNED, REQUIRED])
def test_what_is_written_is_read(by: IndexKeys) -> None:
    assert decode_index(encode_index(MADE, by), by) == MADE
    assert MADE.size == 710


def test_a_change_of_secrets_believes_both() -> None:
    both = IndexKeys((THEIRS, OURS), signs=True, required=True)
    assert decode_index(encode_index(MADE, SIGNED), both) == MADE
    assert decode_index(encode_index(MADE, both), IndexKeys((THEIRS,))) == MADE


def test_an_unsigned_index_is_believed_where_unsigned_rows_are() -> None:
    plain = encode_index(MADE, TRUSTED)
    assert decode_index(plain, SIGNED) == MADE
    with pytest.raises(BadCheckpoint) as told:
        decode_index(plain, REQUIRED)
    assert str(told.value) == (
        "it is not signed, and BELFRY_CHANGELOG=required believes only what is: it is replaced by"
        " the next checkpoint of a worker that signs"
    )


def test_a_strangers_signature_is_never_believed() -> None:
    forged = encode_index(MADE, IndexKeys((THEIRS,), signs=True))
    for by in (TRUSTED, SIGNED, REQUIRED):
        with pytest.raises(BadCheckpoint) as told:
            decode_index(forged, by)
        assert str(told.value) == (
            "its proof is not true: it was cut short or changed, or signed with a secret that this"
            " worker does not have"
        )


def test_a_plain_proof_does_not_pass_as_a_signature() -> None:
    plain = encode_index(MADE, TRUSTED).replace(b" plain ", b" signed ", 1)
    for by in (TRUSTED, REQUIRED):
        with pytest.raises(BadCheckpoint):
            decode_index(plain, by)


@pytest.mark.parametrize("by", [TRUSTED, REQUIRED])
def test_no_bit_can_change_and_no_end_be_cut(by: IndexKeys) -> None:
    index = encode_index(MADE, by)
    for at in range(len(index)):
        changed = bytearray(index)
        changed[at] ^= 1
        for hurt in (bytes(changed), index[:at]):
            with pytest.raises(BadCheckpoint):
                decode_index(hurt, by)


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": -1},
        {"offset": True},
        {"offset": "7"},
        {"offset": 2**70},
        {"partition": None},
        {"cluster": 7},
        {"digest": "0d"},
        {"files": [["../partition-0", 1, "ab" * 32]]},
        {"files": [[".hidden", 1, "ab" * 32]]},
        {"files": [["a/b", 1, "ab" * 32]]},
        {"files": [["a", 1, "AB" * 32]]},
        {"files": [["a", 1, "ab/../" + "ab" * 29]]},
        {"files": [["a", 1]]},
        {"files": [["a", 1, "ab" * 32], ["a", 1, "ab" * 32]]},
        {"files": "abc"},
        {"files": 7},
    ],
)
def test_fields_that_nobody_writes_are_refused(changes: dict[str, Any]) -> None:
    body = {**MADE._asdict(), "files": list(map(list, FILES)), **changes}
    with pytest.raises(BadCheckpoint, match="cannot be read"):
        decode_index(proven(body), TRUSTED)


def body_of(made: Checkpoint) -> dict[str, Any]:
    return {**made._asdict(), "files": list(map(list, made.files))}


def proven(body: object) -> bytes:
    """An index over any body, with a proof that is true."""
    text = json.dumps(body).encode()
    return b"belfry-checkpoint 1 plain %b\n%b" % (checkpoint._proof(text), text)


@pytest.mark.parametrize("body", [[], 7, None, {"cluster": "a"}, "text"])
def test_what_is_no_index_is_refused(body: object) -> None:
    with pytest.raises(BadCheckpoint, match="cannot be read"):
        decode_index(proven(body), TRUSTED)


def test_what_begins_otherwise_or_is_too_long_is_refused() -> None:
    for other in (b"", b"\0" * 90, encode_index(MADE, TRUSTED).replace(b" 1 ", b" 2 ", 1)):
        with pytest.raises(BadCheckpoint, match="begins with"):
            decode_index(other, TRUSTED)
    room = MOST_BYTES - len(proven(body_of(MADE)))
    padded = json.dumps(body_of(MADE)).encode() + b" " * room
    whole = b"belfry-checkpoint 1 plain %b\n%b" % (checkpoint._proof(padded), padded)
    assert len(whole) == MOST_BYTES
    assert decode_index(whole, TRUSTED) == MADE
    with pytest.raises(BadCheckpoint, match="bytes at most"):
        decode_index(encode_index(MADE, TRUSTED) + b" " * MOST_BYTES, TRUSTED)
