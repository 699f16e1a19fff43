"""Nothing counts as shredded while a key is somewhere, or while it is not known where it was."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.cli.payload_readable import _secrets
from belfry.cli.payload_traces import Left, PayloadTraces, Trace
from belfry.cli.payload_verdict import NO_WORKERS, Secrets, text_of, told_of
from belfry.client.key_ring import KeyRing

REF = "file:clinic.keys"
GONE = Secrets(None, {}, {REF: "it is not there"})
CLEAN: dict[str, Any] = {"worker_id": "w1", "in_use": False, "readable": []}


def left(*sorts: Left) -> PayloadTraces:
    found = PayloadTraces("clinic", None, lambda _: None)
    for each in sorts:
        found.found[Trace("belfry.changelog", each, "3f2a" if each is Left.ENCRYPTED else "")] += 1
    return found


def workers(*given: dict[str, Any], silent: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"workers": [{**CLEAN, **each} for each in given], "silent": list(silent)}


@pytest.mark.parametrize("asked", [None, workers({}), NO_WORKERS])
def test_ciphertext_alone_is_nothing_to_read_once_workers_were_asked(
    asked: dict[str, Any] | None,
) -> None:
    told = told_of("clinic", GONE, left(Left.ENCRYPTED, Left.BY_CLIENT), asked)
    assert told["shredded"] is (asked is not None)
    text = text_of(told)
    said = "Not shredded, as far" if asked is None else "Nothing of clinic can be read"
    assert text.startswith(said)
    assert "under key 3f2a, no secret here decrypts it" in text
    assert ("Workers were not asked" in text) is (asked is None)


@pytest.mark.parametrize("sort", [Left.DECRYPTED, Left.AS_SENT, Left.UNKNOWN])
def test_what_can_be_read_or_cannot_be_told_is_left(sort: Left) -> None:
    told = told_of("clinic", GONE, left(sort, Left.ENCRYPTED), workers({}))
    assert told["shredded"] is False
    assert text_of(told).startswith("Not shredded: ")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (workers({"in_use": True}), "worker w1 still has keys of its policy"),
        (
            workers({"readable": [{"reference": REF, "key_ids": ["3f"]}]}),
            f"worker w1 still has keys of {REF}",
        ),
        (workers({}, silent=("w2",)), "worker w2 did not answer"),
    ],
)
def test_a_worker_that_has_a_key_or_is_silent_is_told_of(asked: dict[str, Any], said: str) -> None:
    told = told_of("clinic", GONE, left(), asked)
    assert told["shredded"] is False
    assert said in text_of(told)


def test_a_secret_that_can_be_read_here_is_to_be_destroyed() -> None:
    ring = KeyRing("clinic", [b"0" * 32])
    told = told_of("clinic", Secrets(ring, {REF: ring.ids}, {}), left(), workers({}))
    assert told["shredded"] is False
    assert f"secret {REF} can be read here (keys {ring.newest}): destroy it" in text_of(told)


def test_ciphertext_of_a_secret_that_nobody_named_shows_nothing() -> None:
    told = told_of("clinic", Secrets(None, {}, {}), left(Left.ENCRYPTED), workers({}))
    assert (told["shredded"], told["secret_unnamed"]) == (False, True)
    assert "name it with --key-ref" in text_of(told)
    assert told_of("clinic", Secrets(None, {}, {}), left(), workers({}))["shredded"] is True


def test_secrets_are_read_as_a_worker_reads_them(tmp_path: Path) -> None:
    (tmp_path / "clinic.keys").write_bytes(b"0" * 32 + b"\n" + b"1" * 32)
    session: Any = SimpleNamespace(settings=SimpleNamespace(secrets_dir=tmp_path))
    (tmp_path / "half.keys").write_bytes(b"half a key")
    (tmp_path / "none.keys").write_bytes(b"")
    files = [f"file:{name}" for name in ("gone.keys", "half.keys", "none.keys", "/etc/passwd")]
    found = _secrets(session, "clinic", [REF, *files])
    ring = KeyRing("clinic", [b"0" * 32, b"1" * 32])
    assert found.readable == {REF: ring.ids}
    assert found.ring is not None
    assert found.ring.ids == ring.ids
    assert "cannot be read" in found.missing["file:gone.keys"]
    assert "does not lie below" in found.missing["file:/etc/passwd"]
    assert found.there == {"file:half.keys"}


def test_half_a_secret_is_there_all_the_same() -> None:
    half = Secrets(None, {}, {REF: "it has 10 bytes"}, frozenset({REF}))
    told = told_of("clinic", half, left(Left.ENCRYPTED), workers({}))
    assert told["shredded"] is False
    assert "is here, and is no good secret: destroy it" in text_of(told)
