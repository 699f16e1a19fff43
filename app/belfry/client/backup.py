"""A backup: pending schedules and policies of a belfry, as JSON lines with an end.

    {"belfry_backup":1,"topic_prefix":"belfry.","taken_at":"2026-12-01T09:00:00.000Z"}
    {"policy":{"tenant":"demo","spread":4}}
    {"tenant":"demo","schedule_id":"a","kind":"AT","at":"…","standing":{…}}
    {"end":{"policies":1,"schedules":1}}

A policy's line holds what differs from the defaults; a schedule's line is that of an export
(`portable`).  The last line counts the others, so a backup that was cut off is noticed.  It does
not depend on the number of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from belfry.client.errors import BelfryError
from belfry.client.policy_fields import BadPolicy, policy_from
from belfry.client.portable import NotPortable, request_fields
from belfry.client.usual_lines import is_usual, ready_of
from belfry.schedules.instants import parse_instant
from belfry.tenants.policy import TenantPolicy, problems
from belfry.wire.quick_writing import Ready

# It changes where a release that reads an older form could take a new one for it.
FORMAT: Final = 1
HEAD: Final = "belfry_backup"
# A schedule of the usual form comes as bytes that are ready to be sent.
Part = TenantPolicy | dict[str, Any] | Ready
R = TypeVar("R")


class BadBackup(BelfryError, ValueError):
    """A file that is no whole backup; the message says where and why."""


class BackupCounts(NamedTuple):
    """How much a backup holds; it is the content of its last line."""

    policies: int = 0
    schedules: int = 0


class Written:
    """The lines of a backup; `head` names its source.

    They are made one by one, so a backup of any size needs no memory. `schedules` are lines of an
    export, as `portable_lines` makes them. `held` counts the lines once all were made.
    """

    def __init__(
        self, head: Mapping[str, Any], policies: Iterable[TenantPolicy], schedules: Iterable[bytes]
    ) -> None:
        self._head = head
        self._policies = policies
        self._schedules = schedules
        self.held = BackupCounts()

    def __iter__(self) -> Iterator[bytes]:
        """All lines, once; raises `BadBackup` for a policy that a restore would refuse."""
        yield orjson.dumps({HEAD: FORMAT, **self._head}) + b"\n"
        told = waiting = 0
        for told, policy in enumerate(self._policies, 1):
            line = orjson.dumps({"policy": _short(policy)}) + b"\n"
            # Any other writer may have put it into the topic.
            _part(told + 1, _parsed(told + 1, line))
            yield line
        for waiting, schedule in enumerate(self._schedules, 1):  # noqa: B007  # the last one counts
            yield schedule
        self.held = BackupCounts(told, waiting)
        yield orjson.dumps({"end": self.held._asdict()}) + b"\n"


class Held(NamedTuple):
    """A backup of which every line was understood: its policies, and how much it holds."""

    policies: list[TenantPolicy]
    counts: BackupCounts


def read(lines: Iterable[bytes]) -> Iterator[Part]:
    """Policies and the requests (action CREATE) of a backup; raises `BadBackup`, at its end too.

    So write only after `read` has come to its end once: `checked` does that.
    """
    return _read(lines, ready_of)


def _read(lines: Iterable[bytes], usual: Callable[[bytes], R | None]) -> Iterator[Part | R]:
    """The same; `usual` may make something else of a schedule's line, without reading it."""
    numbered = iter(enumerate(lines, 1))
    _check_head(next(numbered, (1, b""))[1])
    policies, number, end = 0, 1, None
    for number, line in numbered:
        if end is not None:
            raise BadBackup(f"Line {number} comes after the end that line {number - 1} tells.")
        quick = usual(line)
        if quick is not None:
            yield quick
            continue
        given = _parsed(number, line)
        if "end" in given:
            end = given["end"]
            continue
        part = _part(number, given)
        policies += isinstance(part, TenantPolicy)
        yield part
    # Neither the first line nor the closing one is a schedule.
    found = BackupCounts(policies, number - 1 - policies - (end is not None))
    if end is None:
        raise BadBackup(
            f"The backup ends after {found.policies} policies and {found.schedules} schedules"
            " without its closing line: it was cut off. Take another."
        )
    if end != found._asdict():
        raise BadBackup(f"The closing line tells of {end}, and {found._asdict()} are there.")


def taken_at(lines: Iterable[bytes]) -> int | None:
    """When a backup was taken, epoch milliseconds; None where its first line does not say.

    Only the first line is read. Raises `BadBackup` where it is no backup, or the instant cannot be
    read.
    """
    line = next(iter(lines), b"")
    _check_head(line)
    told = orjson.loads(line).get("taken_at")
    try:
        return None if told is None else parse_instant(str(told))
    except ValueError as error:
        raise BadBackup(f"The first line's taken_at cannot be read: {error}") from None


def count(lines: Iterable[bytes]) -> BackupCounts:
    """How much a backup holds, once every line of it was understood; raises `BadBackup`."""
    return checked(lines).counts


def checked(lines: Iterable[bytes]) -> Held:
    """The policies of a backup, and how much it holds; raises `BadBackup` for any bad line."""
    policies: list[TenantPolicy] = []
    schedules = 0
    for part in _read(lines, lambda line: is_usual(line) or None):
        if isinstance(part, TenantPolicy):
            policies.append(part)
        else:
            schedules += 1
    return Held(policies, BackupCounts(len(policies), schedules))


def _check_head(line: bytes) -> None:
    """Raise `BadBackup` unless the first line is that of a backup of this format."""
    try:
        head = orjson.loads(line)
    except orjson.JSONDecodeError:
        head = None
    if not isinstance(head, dict) or HEAD not in head:
        raise BadBackup(
            f"This is no backup: its first line does not say {HEAD}. `belfry backup FILE` writes"
            " one; what `belfry schedule export` wrote is for `belfry schedule import`."
        )
    if head[HEAD] != FORMAT:
        raise BadBackup(
            f"The backup has format {head[HEAD]!r:.20}, and this release reads {FORMAT}: restore it"
            " with the release that wrote it, or a later one."
        )


def _parsed(number: int, line: bytes) -> dict[str, Any]:
    """A line as a JSON object; `number` counts from 1, for the message."""
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadBackup(f"Line {number} is no JSON: {error}. Was it cut off?") from None
    if not isinstance(given, dict):
        raise BadBackup(f"Line {number} is a {type(given).__name__}, not an object.")
    return given


def _part(number: int, given: dict[str, Any]) -> Part:
    """The content of a line: a policy that workers would carry out, or a request."""
    try:
        if given.keys() != {"policy"}:
            return request_fields(given)
        policy = policy_from(given["policy"])
        wrong = problems(policy)
    except (NotPortable, BadPolicy, TypeError, AttributeError) as error:
        raise BadBackup(f"Line {number} cannot be restored: {error}") from None
    if wrong:
        raise BadBackup(f"Line {number} cannot be restored: {' '.join(wrong)}")
    return policy


def _short(policy: TenantPolicy) -> dict[str, Any]:
    """The fields of a policy that differ from the defaults."""
    defaults = asdict(TenantPolicy(policy.tenant))
    told = {name: value for name, value in asdict(policy).items() if value != defaults[name]}
    return {"tenant": policy.tenant, **told}
