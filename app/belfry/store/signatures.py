"""Signatures of changelog rows: which records of a changelog a worker has written.

The topic is compacted, so a row has to prove by itself whose it is: what stood beside it may be
gone.  Two proofs are known, and a signed row begins with the number of its proof:

    2 | token 8 | row             by place: the token belongs to one offset of one partition
    3 | base u64 | tag 8 | row    by content: the tag is over base, key and row

A tombstone has no value to hold a proof, so it carries the same bytes, without a row, in the
record header `belfry-signature`.

**By place** is the cheap one, and the rule.  Tokens are a keystream over offsets, which only those
who know the key can compute.  A writer computes the token of the offset at which its row will lie,
and commits only where the row came to lie there.  Others see a token when its offset is taken, and
what lies at an offset is never changed.  So a row is hashed by nobody, and copies of it are worth
nothing elsewhere.

**By content** is for a writer that does not know its offsets: after a transaction that was rolled
back, and where others write in between.  `base` is the first offset at which the row can lie, and
it is believed up to `NEAR` offsets behind that.  Rows that were rolled back can be read and copied
as well, so no copy may lie as near.  So rows lie in front of `NEAR` fillers in one record batch,
which brokers append as a whole: every copy of it lies behind the fillers.

    base                          base + NEAR     a copy lies behind here
     | row 0 | row 1 | filler x NEAR ......| … |
       believed from `base` on     up to here

A filler is no row.  All of them have one key, so compaction removes them.

Releases before wrote no fillers, and believed such rows up to `FAR` behind their base, though not
behind a later manifest.  Theirs are still believed so: before the offset from which on all owners
write fillers, which the partition's mark tells (`kafka/signature_marks.py`).

All keys are derived for one topic, by its id, and one partition.

What a stranger who may write to the topic can try, and what comes of it:

    offset 500   a worker's row, token of 500           believed
    offset 501   a stranger's copy of that row          token of 500, not of 501: a stranger's
    offset 502   a row of its own, with a made-up token one chance in 2^64
    offset 2000  a copy of a row bound to base 900      2000 > 900 + 1024: a stranger's
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b, shake_256
from struct import Struct
from typing import Final

from belfry.store.layout import keys
from belfry.store.layout.records import UnknownFormat

PLACED: Final = 2
BOUND: Final = 3
SIGNATURE: Final = "belfry-signature"
NEAR: Final = 1_024
FAR: Final = 1_000_000
# The key of records that only take up offsets; they have no value.
FILLER: Final = b"filler"
# Behind every offset: all rows are judged as releases before did.
NOWHERE: Final = 2**63

_TOKEN: Final = 8
# A row that is signed by place begins with this, then come its token and the row.
PLACE: Final = bytes((PLACED,))
_PLACED_SIZE: Final = 1 + _TOKEN
_BOUND_HEAD: Final = Struct(">BQ")
_BOUND_SIZE: Final = _BOUND_HEAD.size + _TOKEN
_SIGNED: Final = (bytes((PLACED,)), bytes((BOUND,)))
_BLOCK: Final = 64
# Formats stay below what texts, and Avro with its zero byte, begin with.
_NO_FORMAT: Final = 32
_JSON: Final = (keys.SETTINGS_KEY, keys.IDENTITY_KEY)
_LENGTHS: Final = Struct(">QIB")


class RowKeys:
    """What one secret can sign and verify in one partition of one changelog."""

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
    return _BOUND_HEAD.pack(BOUND, base) + by.tag(base, key, row)


def is_signed(value: bytes) -> bool:
    """Whether a value says that it is signed; whether that is true is another question."""
    return value[:1] in _SIGNED


def fingerprint(key: bytes) -> str:
    """What names a key without telling it."""
    return blake2b(key, digest_size=8, person=b"fingerprint").hexdigest()


def may_be_a_row(key: bytes, value: bytes | None) -> bool:
    """Whether some release may have written this, signed or not.

    Keys hold a slash, or begin with a zero byte.  Values begin with a format from 1 to 31 and a
    letter; those that are JSON lie under keys of their own.
    """
    if key[:1] != b"\0" and b"/" not in key:
        return False
    if value is None:
        return True
    return (len(value) > 1 and 0 < value[0] < _NO_FORMAT) or key[:2] in _JSON


def row_of(value: bytes) -> bytes:
    """The row of a signed value."""
    return value[_PLACED_SIZE if value[0] == PLACED else _BOUND_SIZE :]


class Verifier:
    """Which signed records of one partition are a worker's, read in the order of their offsets."""

    def __init__(self, believed: Sequence[RowKeys], near_from: int = 0) -> None:
        """From offset `near_from` on, what is signed by content lies in front of fillers."""
        self._keys = believed
        self.near_from = near_from
        # The offset of the last manifest: what was bound before it has come before it.
        self.manifest_at = -1
        # Offsets behind it of what is signed by content.
        self.bound: set[int] = set()

    def holds(self, offset: int, key: bytes, proof: bytes, row: bytes | None) -> bool:
        """Whether a worker has written this record; `proof` may be followed by the row."""
        if proof[:1] == PLACE:
            token = proof[1:_PLACED_SIZE]
            for each in self._keys:  # noqa: SIM110  # the hot path of replay
                if each.token(offset) == token:
                    return True
            return False
        if proof[:1] != _SIGNED[1] or len(proof) < _BOUND_SIZE:
            return False
        _, base = _BOUND_HEAD.unpack_from(proof)
        most = NEAR if offset >= self.near_from else FAR
        if not (self.manifest_at < base <= offset <= base + most):
            return False
        tag = proof[_BOUND_HEAD.size : _BOUND_SIZE]
        if not any(tag == each.tag(base, key, row) for each in self._keys):
            return False
        self.bound.add(offset)
        return True

    def met_manifest(self, offset: int) -> None:
        """A manifest lies there, -1 for none: later records belong to a later transaction."""
        self.manifest_at = offset
        self.bound.clear()


class Judge:
    """Which records of one partition are rows, signed or not; asked in the order of offsets.

        signed, and true          a row; of a later release, replay stops for what it cannot read
        signed, and not true      a stranger's
        not signed                a row, unless signatures are required
        no release writes such    a stranger's, signed or not (`may_be_a_row`)

    Without keys no signature can be judged, so a signed row is an error that says so.
    """

    def __init__(
        self, believed: Sequence[RowKeys] = (), *, required: bool = False, near_from: int = 0
    ) -> None:
        self._verifier = Verifier(believed, near_from) if believed else None
        self._required = required

    def restart(self, manifest_at: int) -> None:
        """Records come from another offset on; the last manifest before it, -1 where unknown.

        Nothing that is bound before that manifest is believed behind it.
        """
        if self._verifier is not None:
            self._verifier.met_manifest(manifest_at)

    def may_be_copies(self, offsets: Iterable[int]) -> bool:
        """Whether rows behind the last manifest may be a stranger's copies of a transaction.

        Those of a release before can, where it was rolled back.  A row that is signed by place
        cannot be copied: without a manifest, it tells of one that is lost.
        """
        return self._verifier is not None and self._verifier.bound.issuperset(offsets)

    @property
    def near_from(self) -> int:
        """From which offset on what is signed by content lies in front of fillers."""
        return 0 if self._verifier is None else self._verifier.near_from

    def believe_near(self, near_from: int) -> None:
        """That offset is known, or another one, by now."""
        if self._verifier is not None:
            self._verifier.near_from = near_from

    @property
    def manifest_at(self) -> int:
        """Offset of the last manifest that was met; -1 for none."""
        return -1 if self._verifier is None else self._verifier.manifest_at

    def row(
        self, offset: int, key: bytes, value: bytes | None, proof: Callable[[], bytes | None]
    ) -> tuple[bool, bytes | None]:
        """Whether a record is a row, and the row without its proof.

        `proof` tells that of a tombstone, None for one that is not signed.
        """
        if not may_be_a_row(key, value):
            return False, None
        if value is None:
            known = self._is_end(offset, key, proof)
        elif is_signed(value):
            known, value = self._is_row(offset, key, value)
        else:
            known = not self._required
        if known and self._verifier is not None and key.startswith(keys.MANIFEST_PREFIX):
            self._verifier.met_manifest(offset)
        return known, value

    def _is_end(self, offset: int, key: bytes, proof: Callable[[], bytes | None]) -> bool:
        if self._verifier is None:
            return True
        told = proof()
        if told is None:
            return not self._required
        return self._verifier.holds(offset, key, told, None)

    def _is_row(self, offset: int, key: bytes, value: bytes) -> tuple[bool, bytes]:
        if self._verifier is None:
            raise UnknownFormat(
                f"The record at offset {offset} of the changelog is signed, and there is no secret"
                " to judge it by: give the BELFRY_HTTP_WORKER_SECRET of the workers."
            )
        row = row_of(value)
        return self._verifier.holds(offset, key, value, row), row
