"""The environment of the posting process, and the limits on what it may read of its parent.

It talks to strangers, so an attacker who takes it over shall gain little: none of the parent's
environment but a few names that a Python program needs, no module from the working directory, and
another user where the operator names one.  A parent on Linux also closes its own environment and
memory in /proc to processes of its user, which the process that posts is otherwise.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import sys
from typing import Any, Final

# It gets no other names, above all none with credentials of Kafka, a cloud or a proxy.
KEPT: Final = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_SET_DUMPABLE: Final = 4  # PR_SET_DUMPABLE of linux/prctl.h.


class BadUser(ValueError):
    """A user that the process that posts cannot run as; the message says why."""


def command(module: str) -> list[str]:
    """How a module of belfry is started; it looks for none in the working directory."""
    return [sys.executable, "-P", "-m", module]


def environment() -> dict[str, str]:
    """The part of this process's environment that the posting process gets."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


def identity(user: str | None) -> dict[str, Any]:
    """The user options for `subprocess.Popen`: empty if the process runs as this one's user.

    `BadUser` for a user that does not exist, or that this process may not become.
    """
    if user is None:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise BadUser(f"there is no user {user!r} on this machine") from None
    if entry.pw_uid == os.geteuid():
        return {}
    if os.geteuid() != 0:
        raise BadUser(f"to start a process as {user!r} a worker has to be started as root")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def close_to_own_user() -> bool:
    """Keep processes of the same user out of this one's memory and environment.

    Root reads them all the same. Dumps of this process are not written any more. False where the
    operating system has no such means; then the process that posts could read them.
    """
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
