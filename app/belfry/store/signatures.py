"""Signatures of changelog rows: how a worker proves that it has written a record.

The topic is compacted, so a row has to prove by itself whose it is: the rows beside it may be gone.
Two proofs are known, and a signed row begins with the number of its proof:

    2 | token 8 | row             by place: the token belongs to one offset of one partition
    3 | base u64 | tag 8 | row    by content: the tag is over base, key and row

A tombstone has no value to hold a proof, so it carries the same bytes, without a row, in the
record header `belfry-signature`.

**By place** is the cheap one, and the rule.  Tokens are a keystream over offsets, which only those
who know the key can compute.  A writer computes the token of the offset at which its row will lie,
and commits only where the row came to lie there.  Others see a token when its offset is taken, and
a record at an offset is never changed.  So a row is hashed by nobody, and copies of it are worth
nothing elsewhere.

**By content** is for a writer that does not know its offsets: after a transaction that was rolled
back, and where others write in between.  `base` is the first offset at which the row can lie, and
it is believed up to `NEAR` offsets behind that.  Rows that were rolled back can be read and copied
as well, so no copy may lie as near.  So rows lie in front of `NEAR` fillers in one record batch,
which brokers append as a whole: every copy of it lies behind the fillers.

    base                          base + NEAR     a copy lies behind here
     | row 0 | row 1 | filler x NEAR ......| … |
       believed from `base` on     up to here

A filler is no row.  All of them have one key, so compaction removes them.  `row_judge.py` judges
the rows that are read.

All keys are derived for one topic, by its id, and one partition.
"""

from __future__ import annotations

from hashlib import blake2b, shake_256
from struct import Struct
from typing import Final

PLACED: Final = 2
BOUND: Final = 3
SIGNATURE: Final = "belfry-signature"
NEAR: Final = 1_024
# The key of records that only take up offsets; they have no value.
FILLER: Final = b"filler"
# Behind every offset: all rows are judged as releases before did.
NOWHERE: Final = 2**63

_TOKEN: Final = 8
# A row that is signed by place begins with this, then come its token and the row.
PLACE: Final = bytes((PLACED,))
PLACED_SIZE: Final = 1 + _TOKEN
BOUND_HEAD: Final = Struct(">BQ")
BOUND_SIZE: Final = BOUND_HEAD.size + _TOKEN
SIGNED: Final = (bytes((PLACED,)), bytes((BOUND,)))
_BLOCK: Final = 64
_LENGTHS: Final = Struct(">QIB")


class RowKeys:
    """The signer and verifier of one secret in one partition of one changelog."""

    def __init__(self, key: bytes, topic_id: str, partition: int) -> None:
        """`key` is the workers' for this purpose."""
        about = b"%b/%d" % (topic_id.encode(), partition)
        self._places = blake2b(about, key=key, person=b"places").digest()
        self._contents = blake2b(about, key=key, person=b"contents").digest()
        self._block = -1
        self._tokens = b""

    def token(self, offset: int) -> bytes:
        """The token of an offset; those of its neighbours are remembered."""
        block, at = divmod(offset, _BLOCK)
        if block != self._block:
            self._block, self._tokens = block, self._tokens_of(block)
        return self._tokens[at * _TOKEN : at * _TOKEN + _TOKEN]

    def tokens(self, start: int, count: int) -> bytes:
        """The tokens of `count` offsets from `start` on, one behind the other."""
        first, skipped = divmod(start, _BLOCK)
        last = (start + count - 1) // _BLOCK
        stream = b"".join(map(self._tokens_of, range(first, last + 1)))
        return stream[skipped * _TOKEN : (skipped + count) * _TOKEN]

    def _tokens_of(self, block: int) -> bytes:
        # The key comes first and has a fixed size, as in KMAC.
        return shake_256(self._places + block.to_bytes(8, "big")).digest(_BLOCK * _TOKEN)

    def tag(self, base: int, key: bytes, row: bytes | None) -> bytes:
        """The tag of a row, or of a tombstone."""
        head = _LENGTHS.pack(base, len(key), row is None)
        tagged = b"".join((head, key, row or b""))
        return blake2b(tagged, key=self._contents, digest_size=_TOKEN).digest()


def bound(by: RowKeys, base: int, key: bytes, row: bytes | None) -> bytes:
    """The proof by content of a row that cannot lie before offset `base`; its row follows."""
    return BOUND_HEAD.pack(BOUND, base) + by.tag(base, key, row)


def is_signed(value: bytes) -> bool:
    """Whether a value says that it is signed; whether that is true is another question."""
    return value[:1] in SIGNED


def fingerprint(key: bytes) -> str:
    """A name of a key that does not tell it."""
    return blake2b(key, digest_size=8, person=b"fingerprint").hexdigest()


def row_of(value: bytes) -> bytes:
    """The row of a signed value."""
    return value[PLACED_SIZE if value[0] == PLACED else BOUND_SIZE :]
