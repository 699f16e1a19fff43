"""Large payloads go elsewhere and come back whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from belfry.client import ClaimBroken, ClaimCheck
from belfry.testing import MemoryScheduler

LARGE = bytes(range(256)) * 8


@pytest.fixture
def claims(tmp_path: Path) -> ClaimCheck:
    return ClaimCheck(f"file://{tmp_path}/claims", above_bytes=1_000)


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_large_payload_comes_back_whole(claims: ClaimCheck, tmp_path: Path) -> None:
    belfry = MemoryScheduler()
    for number in range(2):
        deposit = claims.deposit(LARGE, headers=[("mine", "yes")])
        belfry.schedule("shop", f"report{number}", in_="1h", **deposit)
    first, second = belfry.advance("1h")
    assert (first.payload, first.header("mine")) == (b"", "yes")
    assert claims.redeem(first) == claims.redeem(second) == LARGE
    assert len(stored(tmp_path)) == 1, "the same content is stored once"


@pytest.mark.parametrize("payload", [b"", b"x" * 1_000])
def test_a_small_payload_travels_in_the_event(
    claims: ClaimCheck, tmp_path: Path, payload: bytes
) -> None:
    belfry = MemoryScheduler()
    belfry.schedule("shop", "small", in_="1h", **claims.deposit(payload))
    (event,) = belfry.advance("1h")
    assert event.payload == claims.redeem(event) == payload
    assert stored(tmp_path) == []


@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_what_is_not_what_was_stored_is_refused(
    claims: ClaimCheck, tmp_path: Path, damage: str
) -> None:
    belfry = MemoryScheduler()
    belfry.schedule("shop", "report", in_="1h", **claims.deposit(LARGE))
    (event,) = belfry.advance("1h")
    (file,) = stored(tmp_path)
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(LARGE[:-1] if damage == "cut" else LARGE[:-1] + b"!")
    with pytest.raises(ClaimBroken, match="report"):
        claims.redeem(event)


def test_a_claim_that_is_a_path_is_refused(claims: ClaimCheck) -> None:
    belfry = MemoryScheduler()
    belfry.schedule("shop", "evil", in_=0, headers={"claim-check-sha256": "../../etc/passwd"})
    (event,) = belfry.advance(0)
    with pytest.raises(ClaimBroken, match="is no claim"):
        claims.redeem(event)
