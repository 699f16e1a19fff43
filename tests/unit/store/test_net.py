"""Up to where changes end with a manifest, which is how many of them are folded."""

from __future__ import annotations

import pytest

from belfry.store.layout import keys
from belfry.store.net import after_last_manifest

ROW = (b"demo/a", b"row")
MANIFEST = (keys.manifest_key(7), b"manifest")


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ([], 0),
        ([ROW], 0),
        ([ROW, ROW], 0),
        ([MANIFEST], 1),
        ([ROW, MANIFEST], 2),
        ([MANIFEST, ROW], 1),
        ([MANIFEST, ROW, ROW], 1),
        ([ROW, MANIFEST, ROW, MANIFEST, ROW], 4),
    ],
)
def test_changes_are_whole_up_to_the_last_manifest(
    changes: list[tuple[bytes, bytes | None]], whole: int
) -> None:
    assert after_last_manifest(changes) == whole
