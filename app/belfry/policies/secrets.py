"""Secrets by reference, from only two kinds of places, one secret in each line.

    env:BELFRY_SECRET_NAME   a variable of the worker with this prefix
    file:PATH                a file below BELFRY_SECRETS_DIR; PATH is absolute, or begins there

A reference comes from a policy, so it is trusted no more than the writers of policies are.  Other
variables and other files are not touched.  A file has to be small and regular.  It is opened
without waiting and checked then, so a device or a pipe costs neither memory nor time.

Several lines allow a change of secrets: each of them is accepted, and workers use the first.

    env:BELFRY_SECRET_SHOP     good, if the worker has such a variable
    env:PATH                   refused: only variables with the prefix
    file:shop/key              good: <BELFRY_SECRETS_DIR>/shop/key
    file:../passwd             refused: it does not lie below the folder
    file:link-to-etc-shadow    refused: a link must not lead out of the folder

A link could be swapped after a check of the path alone.  So the file is opened without following a
last link, and the open file is checked.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from belfry.schedules.header_secrets import SECRET_ENV_PREFIX

LEAST_BYTES: Final = 16
MOST_BYTES: Final = 4096
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY


class BadSecret(ValueError):
    """A reference that leads to no secret; the message says why, and which ones are allowed.

    It never holds the secret, nor the content of a file.
    """


class SecretPlaces:
    """The places of secrets on this worker."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the files that references may name."""
        self._folder = Path(os.path.normpath(folder.absolute()))

    def read(self, reference: str, *, whole_lines: bool = False) -> tuple[bytes, ...]:
        """The secrets at a reference, each of `LEAST_BYTES` or more.

        With `whole_lines` the last line of a file has to end with a newline: without one it may be
        cut off, if the file is being written just now.

        Takes a read of `MOST_BYTES` at most, whatever the reference says; raises `BadSecret`.
        """
        kind, _, place = reference.partition(":")
        if kind == "env":
            text = _variable(place)
        elif kind == "file":
            text = self._file(place)
        else:
            raise BadSecret(
                f"a reference of {len(reference)} characters names no place of a secret:"
                f" env:{SECRET_ENV_PREFIX}NAME or file:PATH is allowed."
            )
        if whole_lines and kind == "file" and text.strip() and not text.endswith(b"\n"):
            raise BadSecret(
                f"the last line of {reference} does not end with a newline, so it may be half"
                " written: end it, or write the file beside and rename it."
            )
        found = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not found:
            raise BadSecret(f"{reference} is empty or not set: put a secret there, one in a line.")
        short = min(map(len, found))
        if short < LEAST_BYTES:
            raise BadSecret(
                f"a secret of {reference} has {short} bytes; at least {LEAST_BYTES} are needed."
            )
        return found

    def is_there(self, reference: str) -> bool:
        """Whether there is a variable or a file at a reference, even with a bad secret.

        It serves to destroy a secret: a file that cannot be looked at counts as being there.
        """
        kind, _, place = reference.partition(":")
        if kind == "env" and place.startswith(SECRET_ENV_PREFIX):
            return bool(os.environb.get(os.fsencode(place)))
        named = os.path.normpath(self._folder / place)
        if kind != "file" or "\0" in place or not _below(named, str(self._folder)):
            return False
        try:
            return Path(named).stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def _file(self, place: str) -> bytes:
        """The content of a file below the folder."""
        named = os.path.normpath(self._folder / place)
        if "\0" in place or not _below(named, str(self._folder)):
            raise BadSecret(
                f"file:{place[:200]!r} does not lie below {self._folder} (BELFRY_SECRETS_DIR):"
                " secrets are read only there. Put the file there, or name another one."
            )
        try:
            root = os.path.realpath(self._folder, strict=True)
            path = os.path.realpath(named, strict=True)
            if not _below(path, root):
                raise BadSecret(
                    f"file:{place} is a link that leads out of {self._folder}"
                    " (BELFRY_SECRETS_DIR): put the file itself there."
                )
            return _contents(path)
        except OSError as error:
            raise BadSecret(f"file:{place} cannot be read: {error.strerror}.") from None


def _variable(name: str) -> bytes:
    """The value of a variable that may be named; nothing where it is not set."""
    if not name.startswith(SECRET_ENV_PREFIX) or name == SECRET_ENV_PREFIX:
        raise BadSecret(
            f"env:{name[:200]} is not a variable that a policy may name: give the worker the"
            f" secret in a variable whose name begins with {SECRET_ENV_PREFIX}."
        )
    text = os.environb.get(os.fsencode(name), b"")
    if len(text) > MOST_BYTES:
        raise BadSecret(f"env:{name} has {len(text)} bytes; at most {MOST_BYTES} are read.")
    return text


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _contents(path: str) -> bytes:
    """The content of a small regular file; OSError, or `BadSecret` for any other file.

    O_NONBLOCK: opening a pipe without a writer would otherwise wait for ever.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadSecret(f"file:{path} is not a regular file: secrets are read only from those.")
        text = os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(text) > MOST_BYTES:
        raise BadSecret(f"file:{path} has more than {MOST_BYTES} bytes, the most that is read.")
    return text
