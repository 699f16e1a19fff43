"""Folders elsewhere: of any file system that fsspec knows, such as a bucket.

    opened("s3://bucket/belfry", {…}, …)        its file system, and the path of the folder in it
    put_whole(files, path, data)                a file that readers see whole or not at all
    within(5, lambda: files.cat_file(path))     an answer, or TimeoutError

A folder is used without a check whether it is there.  Errors are raised as the file system raises
them, and a store that never answers holds no caller up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import uuid4

from belfry.host import machine

_Answer = TypeVar("_Answer")
# The names under which file systems tell the time of a file's last change.
_MODIFIED: Final = ("mtime", "LastModified", "last_modified", "updated", "created")
_LOCAL: Final = ("file://", "local://", "file:", "local:")


class NoStore(ValueError):
    """The named store cannot be used; the message says what to do."""


def opened(url: str, options: dict[str, Any], names: tuple[str, str]) -> tuple[Any, str]:
    """The file system of a URL, with these options of fsspec, and the path of the folder in it.

    Raises `NoStore` where there is no such file system, and for a folder of this machine that is
    not absolute; `names` are those of the two settings.
    """
    variable, of_options = names
    if _is_relative(url):
        raise NoStore(_relative(url, variable))
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise NoStore(
            f"{variable} needs the extra checkpoints: pip install 'belfry-scheduler[checkpoints]'."
        ) from None
    try:
        files, path = url_to_fs(url, **options)
    except (ImportError, ValueError, TypeError) as error:
        # The address itself is not shown, because it may hold a password.
        raise NoStore(
            f"{variable} cannot be used: {error}. Give a URL that fsspec knows, file:///folder or"
            f" s3://bucket/folder, and for S3 install the extra s3; {of_options} are options of"
            " that file system."
        ) from None
    return files, path.rstrip("/")


def _is_relative(url: str) -> bool:
    """Whether fsspec would take it for a folder below the one in which this process runs."""
    place = url.rpartition("::")[2]
    for scheme in _LOCAL:
        if place.startswith(scheme):
            return not place.removeprefix(scheme).startswith("/")
    return "://" not in place and not place.startswith("/")


def _relative(url: str, variable: str) -> str:
    # An address with a user in it may hold a password.
    given = "an address that is not shown here" if "@" in url else repr(url)
    return (
        f"{variable} cannot be used: it is {given}, which is neither a URL nor an absolute path. It"
        " would be another folder for each process, below the one in which it runs. Give a URL that"
        " fsspec knows, file:///folder or s3://bucket/folder, or a path that begins with /."
    )


def put_whole(files: Any, path: str, data: bytes) -> None:
    """Write a file that readers see whole or not at all.

    A bucket shows an object once all of it is there.  A file system shows a file as it grows, so
    there the file is written under another name first.
    """
    if files.async_impl:
        files.pipe_file(path, data)
        return
    files.makedirs(path.rpartition("/")[0], exist_ok=True)
    aside = f"{path}.{uuid4().hex}"
    try:
        files.pipe_file(aside, data)
        files.mv(aside, path)
    except BaseException:
        if files.exists(aside):
            files.rm_file(aside)
        raise


def modified_ms(entry: Mapping[str, Any]) -> float | None:
    """The instant of a file's last change, epoch ms by its file system's clock; or None.

    `entry` is the file system's listing of the file.
    """
    for name in _MODIFIED:
        at = entry.get(name)
        if isinstance(at, datetime):
            return at.timestamp() * 1000
        if isinstance(at, (int, float)):
            return at * 1000
    return None


def within(seconds: float, call: Callable[[], _Answer]) -> _Answer:
    """The answer of a call; TimeoutError where it does not come within so many seconds.

    A call that hangs is left behind in a thread that does not keep the process from ending.
    """
    answers: list[Callable[[], _Answer]] = []

    def ask() -> None:
        try:
            answer = call()
        except Exception as error:  # noqa: BLE001  # raised in the thread that waits for it
            answers.append(lambda failed=error: _fail(failed))  # type: ignore[misc]
        else:
            answers.append(lambda: answer)

    thread = machine.Thread(target=ask, name="belfry-store-answer", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise TimeoutError(f"the store has not answered within {seconds:g} s")
    return answers[0]()


def _fail(error: Exception) -> Any:
    raise error
