"""The cache: whole bundles or none, and only the pinned bytes."""

from __future__ import annotations

import hashlib
import io
import tarfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from belfry.devstack import DevStackError, artifacts, fetching
from belfry.devstack.artifacts import pins
from belfry.devstack.fetching import Pin

JAR = b"pretend that these are classes"


def jar_pin(content: bytes = JAR) -> Pin:
    return Pin("demo", hashlib.sha256(content).hexdigest(), len(content), "org.demo:demo:1.0")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELFRY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Downloads:
    """Stands for the local Maven repository: each resolution writes the next content."""

    def __init__(self, directory: Path, *contents: bytes) -> None:
        self.file = directory / "demo-1.0.jar"
        self.contents = list(contents)

    def __call__(self) -> Path:
        if not self.file.exists():
            self.file.write_bytes(self.contents.pop(0))
        return self.file


def fill(monkeypatch: pytest.MonkeyPatch, target: Path, pin: Pin, downloads: Downloads) -> None:
    monkeypatch.setattr(fetching, "_resolution", lambda pin, fetched: downloads)
    target.parent.mkdir(parents=True, exist_ok=True)
    artifacts._fill(target, "Demo", [pin])


def test_every_artifact_is_pinned_to_the_byte() -> None:
    counts = {bundle: len(pins(bundle)) for bundle in artifacts.TITLES}
    assert counts == {
        "kafka": 46,
        "registry": 1,
        "connect": 58,
        "connect-file": 1,
        "connect-avro": 25,
        "connect-jdbc": 1,
        "connect-postgres": 1,
    }
    for bundle in artifacts.TITLES:
        assert len({pin.coordinates for pin in pins(bundle)}) == counts[bundle]
        assert all(len(pin.sha256) == 64 and pin.size > 0 for pin in pins(bundle))


def test_the_versions_shown_are_the_versions_pinned() -> None:
    for bundle, title in artifacts.TITLES.items():
        version = title.split()[-1]
        assert any(pin.coordinates.split(":")[2] == version for pin in pins(bundle))


def test_a_bundle_holds_its_files(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch, own_cache / "demo", jar_pin(), Downloads(tmp_path, JAR))
    assert [one.name for one in own_cache.iterdir()] == ["demo"]
    assert (own_cache / "demo" / "demo-1.0.jar").read_bytes() == JAR


def test_the_rest_of_an_interrupted_download_is_fetched_again(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch, own_cache / "demo", jar_pin(), Downloads(tmp_path, JAR[:7], JAR))
    assert (own_cache / "demo" / "demo-1.0.jar").read_bytes() == JAR


def test_other_bytes_than_the_pinned_ones_are_refused(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DevStackError, match=r"org\.demo:demo:1\.0 was downloaded twice"):
        fill(monkeypatch, own_cache / "demo", jar_pin(), Downloads(tmp_path, b"evil", b"evil"))
    assert list(own_cache.iterdir()) == []


def test_no_network_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable() -> Path:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(fetching, "_resolution", lambda pin, fetched: unreachable)
    with pytest.raises(DevStackError, match="could not be downloaded: nobody there"):
        fetching._fetch(jar_pin(), nullcontext(lambda count: None))


def test_an_archive_is_unpacked(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _archive({"lib/one.jar": b"1", "run.jar": b"2"})
    digest = hashlib.sha256(archive).hexdigest()
    pin = Pin("demo", digest, len(archive), "org.demo:demo:1.0:all:tar.gz")
    fill(monkeypatch, own_cache / "demo", pin, Downloads(tmp_path, archive))
    assert (own_cache / "demo" / "lib" / "one.jar").read_bytes() == b"1"


def test_jgo_names_the_files_as_maven_does() -> None:
    """The coordinates of the list lead to the right file names, without a download."""
    registry = pins("registry")[0]
    resolve = fetching._resolution(registry, nullcontext(lambda count: None))
    artifact = resolve.__self__  # type: ignore[attr-defined]
    assert artifact.filename == "apicurio-registry-app-3.3.3-all.tar.gz"


def _archive(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()
