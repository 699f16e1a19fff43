"""What is lost is named by the rows behind the mark, and what they do not name is counted."""

from __future__ import annotations

from typing import Final

from belfry.mirror.losses import FiredBehind, FiresBehind, LostRequest, lost_request, stood_before
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending import Pending, encode_pending
from belfry.store.layout.records import Marker, encode_marker
from belfry.verification.rows import Logged
from tests.acceptance.harness.requests import request

DUE: Final = 1_000
LIFE: Final = 7


def waits(name: str, *, occurrence: int = 0) -> bytes:
    return encode_pending(
        Pending(
            DUE, DUE, 0, 7, LIFE, 1, occurrence, 0, DUE, 0, b"shop", name.encode(), b"", b"", None,
            b"", b"", b"x",
        )
    )  # fmt: skip


def log(*rows: tuple[bytes, bytes | None], at: int = 0, fired: int = 0) -> list[Logged]:
    """A transaction as it lies in the changelog."""
    manifest = encode_manifest(Manifest(9, 1, 5, DUE + 5, 1, fired, bytes(16)))
    found = [Logged(at + each, 0, *row) for each, row in enumerate(rows)]
    return [*found, Logged(at + len(rows), 0, keys.manifest_key(9), manifest)]


MARKER: Final = encode_marker(Marker(0, DUE + 3, DUE, LIFE, 1, 1))


def test_fires_behind_the_mark_are_named() -> None:
    before = log((b"shop/a", waits("a")), (b"shop/b", waits("b")), (b"shop/c", waits("c")))
    names = frozenset({b"shop/a", b"shop/b"})
    behind = log((b"shop/a", MARKER), (b"shop/b", waits("b", occurrence=2)), at=10, fired=3)
    fires = FiresBehind(stood_before(before, names))
    assert list(fires.of(behind)) == [
        FiredBehind(True, b"shop/a", DUE, 1, 10),
        FiredBehind(True, b"shop/b", DUE, 2, 11),
    ]
    assert fires.told == 3


def test_what_was_changed_and_did_not_fire_is_not_named() -> None:
    fires = FiresBehind({})
    behind = log((b"shop/a", waits("a")), (b"shop/b", waits("b")), at=10)
    behind += log((b"shop/a", None), (b"shop/b", MARKER), at=20, fired=1)
    found = list(fires.of(behind))
    assert [each.name for each in found if each.times] == [b"shop/b"]
    # Nobody here knows of them, so neither fires once more.
    assert not any(each.again for each in found)
    # It was due, and may have fired before it was cancelled.
    assert [(each.name, each.times) for each in found if not each.times] == [(b"shop/a", None)]
    assert fires.told == 1


def test_a_request_is_listed_with_what_it_says_and_one_that_says_nothing_with_its_key() -> None:
    value = request("shop", "a", at=5_000)
    assert lost_request((17, 900, b"shop", value, None)) == LostRequest(
        17, 900, b"shop", "UPSERT", "shop", "a"
    )
    assert lost_request((18, 901, b"key", b"no request", None)) == LostRequest(18, 901, b"key")
