"""Large payloads go elsewhere and come back whole, or not at all."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from belfry.client import ClaimBroken, ClaimCheck, FiredRecord, KeyRing, NotDecrypted
from belfry.testing import MemoryScheduler
from belfry.wire.claim_check import claims_of, digest_of, object_name
from belfry.wire.record import Headers

LARGE = bytes(range(256)) * 8
SECRETS = [b"1" * 32]
RING = KeyRing("clinic", SECRETS)


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


def encrypted(folder: Path, name: str = "clinic/card") -> FiredRecord:
    """An event whose payload a worker has stored, encrypted for this schedule."""
    ciphertext = RING.encrypt(b"clinic/card", LARGE)
    path = folder / object_name(digest_of(ciphertext))
    path.parent.mkdir(parents=True)
    path.write_bytes(ciphertext)
    claims: Headers = [(each, text.encode()) for each, text in claims_of(ciphertext)]
    claims.append(("claim-check-encrypted", name.encode()))
    return FiredRecord("belfry.fired.clinic", 0, 0, None, None, b"", claims)


def test_what_a_worker_has_encrypted_is_redeemed_with_the_keys_of_its_tenant(
    tmp_path: Path,
) -> None:
    event = encrypted(tmp_path)
    newer = KeyRing("clinic", [b"new" * 11, *SECRETS])
    assert ClaimCheck(f"file://{tmp_path}", keys=newer).redeem(event) == LARGE
    for keys in (None, KeyRing("clinic", [b"new" * 11]), KeyRing("shop", SECRETS)):
        with pytest.raises(NotDecrypted):
            ClaimCheck(f"file://{tmp_path}", keys=keys).redeem(event)


def test_what_was_encrypted_for_another_schedule_is_not_believed(tmp_path: Path) -> None:
    event = encrypted(tmp_path, "clinic/other")
    with pytest.raises(NotDecrypted, match="not what was encrypted for it"):
        ClaimCheck(f"file://{tmp_path}", keys=RING).redeem(event)


@pytest.mark.parametrize(("age_s", "anew"), [(3_000, False), (4_000, True)])
def test_what_lies_there_for_long_is_stored_anew_so_that_no_sweep_takes_it(
    claims: ClaimCheck, tmp_path: Path, age_s: int, anew: bool
) -> None:
    claims.deposit(LARGE)
    (file,) = stored(tmp_path)
    then = time.time() - age_s
    os.utime(file, (then, then))
    claims.deposit(LARGE)
    assert (file.stat().st_mtime > then + 1) is anew
    assert stored(tmp_path) == [file]


def test_what_was_cut_short_lately_is_stored_anew(claims: ClaimCheck, tmp_path: Path) -> None:
    claims.deposit(LARGE)
    (file,) = stored(tmp_path)
    file.write_bytes(LARGE[:-1])
    claims.deposit(LARGE)
    assert file.read_bytes() == LARGE
