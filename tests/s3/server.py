"""A server of S3's protocol, on this machine, whose objects are files of a folder.

    bucket/shop/5f/5f0c…    an object of the bucket; its time of change is that of the object

So a test looks at objects, damages them and makes them old without asking the server.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from belfry.devstack import free_port

ROOT: Final = Path(__file__).parents[2]
BINARY: Final = ROOT / ".tools" / "versitygw-v1.8.0"
BUCKET: Final = "belfry"
_KEYS: Final = {"key": "belfry-tests", "secret": "no-secret-of-anybody"}


def packages() -> str:
    """Where s3fs lies, which has an environment of its own; empty where there is none."""
    found = sorted((ROOT / ".venv" / "s3" / "lib").glob("python*/site-packages"))
    return str(found[0]) if found else ""


def missing() -> str:
    """What is not here that the server, or its clients, need; empty where all is."""
    return "" if BINARY.exists() and packages() else "run `make s3`, which needs Go"


class S3Server:
    """The server; it may be stopped, started again, and made to hang."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        # What lies in the bucket.
        self.bucket = home / "objects" / BUCKET

    def options(self, **other: str) -> dict[str, Any]:
        """Options of fsspec for it; `other` in place of the right ones."""
        keys = {**_KEYS, **other}
        return {"endpoint_url": f"http://127.0.0.1:{self._port}", **keys}

    def start(self) -> S3Server:
        """Start it, with what it has stored before."""
        self.bucket.mkdir(parents=True, exist_ok=True)
        meta = self._home / "meta"
        meta.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._home),
            "ROOT_ACCESS_KEY": _KEYS["key"],
            "ROOT_SECRET_KEY": _KEYS["secret"],
        }
        self._process = subprocess.Popen(
            [
                *(str(BINARY), "--port", f"127.0.0.1:{self._port}", "--quiet"),
                *("--max-connections", "1000", "--max-requests", "200"),
                *("posix", "--sidecar", str(meta), str(self.bucket.parent)),
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + 30
        while not self._listens():
            assert self._process.poll() is None, "the S3 server ended at once"
            assert time.monotonic() < deadline, "the S3 server does not listen"
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """End it, as one that is down: connections are refused."""
        if self._process is not None:
            self.go_on()
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def hang(self) -> None:
        """Let it answer nothing: connections are taken, and stay silent."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def objects(self, below: str = "") -> list[str]:
        """Paths of what lies in the bucket."""
        files = (each for each in (self.bucket / below).rglob("*") if each.is_file())
        return sorted(str(each.relative_to(self.bucket)) for each in files)

    def make_old(self, path: str, days: float = 30) -> None:
        """Let an object have been stored so long ago."""
        at_s = time.time() - days * 86_400
        os.utime(self.bucket / path, (at_s, at_s))

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self._port)) == 0


def let_import() -> None:
    """Let this process import s3fs; what it has already comes first."""
    if packages() not in sys.path:
        sys.path.append(packages())
