"""`make image-check`: a worker runs from the image, and an event fires.

The archive is unpacked by what its manifest says, each digest compared.  A container is namespaces
of Linux: processes and mounts of its own, the image as its root that nobody writes to, the user
that the image names, and the network of this machine, where a broker is.

    broker (here) ◄── worker (in the image, process 1) ◄── the image's check of health
                  ◄── belfry schedule create, belfry events tail (in the image)
                      SIGTERM ─► exit code 0
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from belfry.devstack import Kafka
from belfry.devstack.ports import free_port
from deploy.image.build import ARCHIVE, SBOM

READY_S: Final = 60
PAYLOAD: Final = "from the image"
# $0 is the image's root, $1 its state's folder here, $2 user:group; then the command.
CONTAINER: Final = """
mount --make-rprivate /
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/tmp"
mount --bind /dev "$0/dev"
mount --bind "$1" "$0/var/lib/belfry"
mount -o remount,bind,ro "$0"
user="$2" root="$0"
shift 2
exec chroot --userspec="$user" "$root" "$@"
"""


@dataclass(frozen=True)
class Image:
    """An image, unpacked."""

    root: Path
    config: dict[str, Any]

    def start(
        self, state: Path, environment: dict[str, str], *command: str
    ) -> subprocess.Popen[str]:
        """Start a container; its process 1 runs the command."""
        given = dict(each.split("=", 1) for each in self.config["Env"])
        return subprocess.Popen(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
                *("sh", "-euc", CONTAINER, str(self.root), str(state), self.config["User"]),
                *command,
            ],
            env={**given, **environment, "HOME": "/tmp"},  # noqa: S108  (the container's own)
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, state: Path, environment: dict[str, str], *command: str) -> str:
        """Run a command to its end; returns what it printed."""
        running = self.start(state, environment, *command)
        printed, _ = running.communicate(timeout=60)
        if running.returncode:
            sys.exit(f"{' '.join(command)} ended with {running.returncode}:\n{printed}")
        return printed


def unpacked(archive: Path, folder: Path) -> Image:
    """Unpack an archive; what does not have the digest by which it is named is an error."""
    with tarfile.open(archive) as tar:

        def blob(descriptor: dict[str, Any]) -> bytes:
            digest: str = descriptor["digest"]
            member = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            content = member.read() if member is not None else b""
            assert digest == f"sha256:{hashlib.sha256(content).hexdigest()}", digest
            return content

        index_file = tar.extractfile("index.json")
        assert index_file is not None
        (listed,) = json.load(index_file)["manifests"]
        manifest = json.loads(blob(listed))
        config = json.loads(blob(manifest["config"]))
        root = folder / "root"
        for each, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            content = gzip.decompress(blob(each))
            assert diff_id == f"sha256:{hashlib.sha256(content).hexdigest()}", diff_id
            layer = folder / "layer.tar"
            layer.write_bytes(content)
            with tarfile.open(layer) as files:
                files.extractall(root, numeric_owner=True, filter="fully_trusted")
    return Image(root, config["config"])


@contextmanager
def worker(image: Image, state: Path, environment: dict[str, str]) -> Iterator[None]:
    """A worker while the block runs; it has to end well when it is asked to."""
    running = image.start(state, environment, *image.config["Entrypoint"], *image.config["Cmd"])
    try:
        yield
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text()
        os.kill(int(children), signal.SIGTERM)
        assert running.wait(timeout=40) == 0, running.returncode
    except BaseException:
        running.kill()
        print(running.stdout.read() if running.stdout else "", file=sys.stderr)
        raise
    finally:
        running.kill()
        running.wait()


def wait_healthy(image: Image, state: Path, environment: dict[str, str]) -> float:
    """Ask as the image asks, by its own check, until it is healthy; returns seconds."""
    began = time.monotonic()
    check = image.config["Healthcheck"]["Test"][1:]
    while (asked := image.start(state, environment, *check)).wait(timeout=30):
        if time.monotonic() - began > READY_S:
            sys.exit(
                f"not healthy after {READY_S} s: {asked.stdout.read() if asked.stdout else ''}"
            )
        time.sleep(0.2)
    return time.monotonic() - began


def main() -> None:
    """Run the main job in the image; says what was seen."""
    with tempfile.TemporaryDirectory(prefix="belfry-container-") as folder:
        image = unpacked(ARCHIVE, Path(folder))
        assert (image.root / SBOM).stat().st_size > 10_000
        state = Path(folder, "state")
        state.mkdir(mode=0o700)
        user, group = map(int, image.config["User"].split(":"))
        os.chown(state, user, group)
        kafka = Kafka(Path(folder, "kafka"))
        kafka.start()
        try:
            kafka.wait_ready(90, lambda: False)
            _fire(image, state, kafka.bootstrap_servers)
        finally:
            kafka.stop()


def _fire(image: Image, state: Path, brokers: str) -> None:
    http, health = free_port(0), free_port(0)
    environment = {
        "BELFRY_BOOTSTRAP_SERVERS": brokers,
        "BELFRY_HTTP_PORT": str(http),
        "BELFRY_HEALTH_PORT": str(health),
        "BELFRY_CLUSTER__PARTITIONS": "2",
    }
    belfry = tuple(image.config["Entrypoint"])
    with worker(image, state, environment):
        healthy_s = wait_healthy(image, state, environment)
        asked = ("schedule", "create", "demo", "hello", "--in", "2s", "--payload", PAYLOAD)
        print(image.run(state, environment, *belfry, *asked).strip())
        tail = ("events", "tail", "demo", "--from-beginning", "--max", "1")
        seen = image.run(state, environment, *belfry, *tail)
        assert PAYLOAD in seen, seen
        print(seen.strip())
    print(f"{ARCHIVE.name}: healthy after {healthy_s:.1f} s, an event fired, ended with 0")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("make image-check needs root, for namespaces and mounts.")
    main()
