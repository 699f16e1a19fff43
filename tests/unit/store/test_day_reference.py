"""What stands for a payload that lies in a day file, also where a later release has written it."""

from __future__ import annotations

import pytest

from belfry.store.layout.day_reference import (
    DayFile,
    Reference,
    decode_reference,
    digest_of,
    encode_reference,
    size_in,
    stands_for,
)

THERE = Reference(DayFile(20_000, 3, b"12345678"), 40, 7, digest_of(b"payload"))
STANDS = encode_reference(THERE)


def test_a_reference_is_read_as_it_was_written() -> None:
    assert decode_reference(STANDS) == THERE
    assert size_in(STANDS) == 7
    assert stands_for(STANDS, b"payload")
    assert not stands_for(STANDS, b"another")


@pytest.mark.parametrize("stands", [b"\2" + STANDS[1:], STANDS[:-1], STANDS + b"\0", b"\2", b""])
def test_a_reference_of_a_later_release_has_no_size_and_stands_for_nothing(stands: bytes) -> None:
    assert size_in(stands) == 0
    assert not stands_for(stands, b"payload")
    with pytest.raises(ValueError, match="of a later release") as told:
        decode_reference(stands)
    assert str(told.value) == f"a reference of format {stands[:1].hex()}, of a later release"
