"""A temporary PostgreSQL server, for sinks to write to and sources to read; it must be installed.

The programs are searched where Debian puts them, then on the path.  The server listens on the
loopback address and asks for a random password.  Its folder is removed when it stops.  PostgreSQL
refuses to run for the superuser, so it runs as ``nobody`` then.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from belfry.devstack.child import Child
from belfry.devstack.errors import DevStackError
from belfry.devstack.ports import LOOPBACK, free_port

# Seconds for preparing, and for the server's first answer.
START_S: Final = 60.0
QUERY_S: Final = 30.0
POLL_S: Final = 0.1
USER: Final = "belfry"
# No data has to survive a power failure here.
FAST: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=32MB")


def programs() -> Path | None:
    """Folder of ``initdb`` and ``postgres``, or None where PostgreSQL is not installed."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).parent if found and shutil.which("postgres") else None


# A source of Kafka Connect reads the log of changes, which needs this setting for that.
READABLE: Final = "wal_level=logical"


class Postgres:
    """A server with one database, ``postgres``; use it as a context manager.

    `port` and `password` are chosen when it is made. Entering blocks until it answers. Raises
    `DevStackError` where PostgreSQL is not installed, or does not start.
    """

    def __init__(self) -> None:
        found = programs()
        if found is None or shutil.which("psql") is None:
            raise DevStackError(
                "PostgreSQL is not installed: install the package postgresql of your system."
            )
        self._programs = found
        self.port = free_port()
        self.password = secrets.token_urlsafe(16)
        # Not below a folder of the caller's, which other users may not be allowed to enter.
        self._home = Path(tempfile.mkdtemp(prefix="belfry-postgres-"))
        self._child: Child | None = None

    @property
    def jdbc_url(self) -> str:
        """Address for Java."""
        return f"jdbc:postgresql://{LOOPBACK}:{self.port}/postgres"

    def __enter__(self) -> Self:
        try:
            self._prepare()
            self._child = Child(self._as_user("postgres", *self._options()), log=self._log)
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server and remove its files."""
        if self._child is not None:
            self._child.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def query(self, sql: str) -> list[list[str]]:
        """Rows of a query as texts; raises `DevStackError` with PostgreSQL's message.

        It runs `psql`, so no driver has to be installed. Null is an empty text.
        """
        psql = ["psql", "-X", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", sql]
        where = ["-h", LOOPBACK, "-p", str(self.port), "-U", USER, "-d", "postgres"]
        answer = subprocess.run(
            [*psql, *where],
            env={**os.environ, "PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "5"},
            capture_output=True,
            text=True,
            check=False,
            timeout=QUERY_S,
        )
        if answer.returncode != 0:
            raise DevStackError(f"PostgreSQL refuses {sql!r}: {answer.stderr.strip()}")
        return [line.split("\t") for line in answer.stdout.splitlines()]

    @property
    def _log(self) -> Path:
        return self._home / "postgres.log"

    def _prepare(self) -> None:
        """Make the data directory with ``initdb``; the file of the password is removed
        afterwards.
        """
        secret = self._home / "password"
        secret.write_text(self.password, "utf-8")
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            for path in (self._home, secret):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        made = subprocess.run(
            self._as_user(
                "initdb",
                f"--pgdata={self._home / 'data'}",
                f"--username={USER}",
                f"--pwfile={secret}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
            cwd=self._home,
        )
        secret.unlink()
        if made.returncode != 0:
            why = made.stderr.strip() or f"initdb ended with {made.returncode}, and said nothing"
            raise DevStackError(f"PostgreSQL could not be prepared: {why}")

    def _options(self) -> list[str]:
        """The arguments of the server: on the loopback address, without a socket file."""
        settings = (
            f"listen_addresses={LOOPBACK}",
            f"port={self.port}",
            "unix_socket_directories=",
            *FAST,
            READABLE,
        )
        return ["-D", str(self._home / "data"), *(part for s in settings for part in ("-c", s))]

    def _as_user(self, program: str, *arguments: str) -> list[str]:
        """The command of a program, run by a user who is not the superuser."""
        command = [str(self._programs / program), *arguments]
        if os.geteuid() != 0:
            return command
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise DevStackError("PostgreSQL must not run as root, and setpriv is not installed.")
        nobody = pwd.getpwnam("nobody")
        # A change of user drops the request to die with the parent, so it is made anew.
        who = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        return [setpriv, *who, "--pdeathsig=KILL", *command]

    def _wait_ready(self) -> None:
        """Ask until the server answers a query; raises with its log where it ended, or took too
        long.
        """
        assert self._child is not None
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.query("SELECT 1")
            except DevStackError as error:
                ended = self._child.exit_code() is not None
                if ended or time.monotonic() > deadline:
                    text = self._log.read_text("utf-8", errors="replace")
                    raise DevStackError(f"PostgreSQL does not answer: {error}\n{text}") from None
            else:
                return
            time.sleep(POLL_S)
