"""An image as the Open Container Initiative lays it out, in one archive, the same bytes each time.

    tree ─► layer: a tar, sorted, owned by numbers, of one instant ─► gzip without a date
    layers, configuration ─► manifest ─► index ─► archive

The formats are those of the image specification 1.1: a blob lies under its SHA-256, a layer's
`diff_id` is the digest of its tar before it was packed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
PACKING: Final = 6  # Level of gzip: 9 takes three times as long for 1 % less.
CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Blob:
    """Bytes of the archive, with what describes them there."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """The name of the bytes: ``sha256:`` and 64 digits."""
        return "sha256:" + hashlib.sha256(self.content).hexdigest()

    def descriptor(self) -> dict[str, Any]:
        """How a manifest refers to it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


@dataclass(frozen=True)
class Layer:
    """One layer: packed, its digest before that, and its size unpacked, in bytes."""

    blob: Blob
    diff_id: str
    size: int
    title: str


class _Digested(io.RawIOBase):
    """Writes on to a file, and digests and counts what goes through."""

    def __init__(self, into: IO[bytes]) -> None:
        self._into = into
        self.sha256 = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        self.size += len(data)
        return self._into.write(data)


def layer(root: Path, paths: Iterable[Path], epoch: int, title: str) -> Layer:
    """What lies at ``paths`` below ``root``, as a layer; owners and modes are those of the disk.

    ``epoch`` is the instant of all files, in seconds since 1970.
    """
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", PACKING, packed, mtime=0) as zipped:
        through = _Digested(zipped)  # type: ignore[arg-type]  # GzipFile writes bytes as files do.
        with tarfile.open(fileobj=through, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(paths, key=lambda each: each.as_posix()):
                _add(tar, root, path, epoch)
    return Layer(
        Blob(LAYER, packed.getvalue()),
        "sha256:" + through.sha256.hexdigest(),
        through.size,
        title,
    )


def _add(tar: tarfile.TarFile, root: Path, path: Path, epoch: int) -> None:
    entry = tar.gettarinfo(path, path.relative_to(root).as_posix())
    entry.mtime, entry.uname, entry.gname = epoch, "", ""
    # A hard link depends on the order of the disk; each file is written out.
    if entry.islnk():
        entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
    if not entry.isreg():
        tar.addfile(entry)
        return
    with path.open("rb") as content:
        tar.addfile(entry, content)


def image(
    layers: list[Layer], runtime: Mapping[str, Any], platform: Mapping[str, str], created: str
) -> list[Blob]:
    """Configuration and manifest of an image, in this order.

    ``runtime`` is what a container is started with (``User``, ``Entrypoint``, …), ``created`` an
    instant of RFC 3339.
    """
    configuration = {
        "created": created,
        **platform,
        "config": dict(runtime),
        "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in layers]},
        "history": [{"created": created, "created_by": each.title} for each in layers],
    }
    config = Blob(CONFIG, _json(configuration))
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.descriptor(),
        "layers": [each.blob.descriptor() for each in layers],
        "annotations": dict(runtime.get("Labels", {})),
    }
    return [config, Blob(MANIFEST, _json(manifest))]


def write(target: Path, name: str, layers: list[Layer], described: list[Blob], epoch: int) -> str:
    """Write the archive; returns the digest of the manifest, by which a registry knows the image.

    ``name`` is the reference, such as ``belfry:0.1.0``.
    """
    manifest = described[-1]
    tag = name.rpartition(":")[2]
    listed = {
        **manifest.descriptor(),
        "annotations": {
            "org.opencontainers.image.ref.name": tag,
            # By this one docker and containerd find a name for what they load.
            "io.containerd.image.name": f"docker.io/library/{name}",
        },
    }
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [listed]}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        **{
            f"blobs/sha256/{blob.digest.removeprefix('sha256:')}": blob.content
            for blob in [*(each.blob for each in layers), *described]
        },
    }
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            tar.addfile(entry, io.BytesIO(content))
    return manifest.digest


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
