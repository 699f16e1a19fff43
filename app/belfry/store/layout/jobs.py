r"""A bulk job as it lies in a partition's changelog: its action, and how far it has come.

    key    00 6a  tenant/job                 \0j, then names as in the key of a schedule
    row    01 0e                             format, kind
           JSON                              an object, see `JobRow`

Each home of the tenant has a row of its own, which the steps that work on the job write anew.  It
is written in the same transaction as the job's changes there, so the cursor never says less or more
than has been done.  An ended job keeps its row for `KEPT_MS`, for readers who ask for its result.

A release that knows no such rows stops at them: let jobs end, and their rows go, before.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from belfry.store.layout.records import FORMAT, JOB

JOB_PREFIX: Final = b"\0j"
JOB_END: Final = b"\0k"
HEAD_OF_JOB: Final = bytes((FORMAT, JOB))
KEPT_MS: Final = 7 * 86_400_000

RUNNING: Final = "RUNNING"
DONE: Final = "DONE"
STOPPED: Final = "STOPPED"


class JobRow(NamedTuple):
    """A job in one partition; instants are epoch ms.

    `spec` is the text that asked for it.  `offset` is that of the request in this partition:
    schedules that were asked for later are none of the job's business.  `origin` is where the
    request was first received (partition, offset), and `homes` in how many partitions the job
    works.  `cursor` is the changelog key of the last schedule that was looked at.  Of those that
    matched, `done` were changed, `unchanged` were so already, and `refused` could not be;
    `refusals` has their codes. A backfill has `fired` so many occurrences.  `amid` is the changelog
    key of the schedule that it is amid, which lies behind the cursor: the last of its occurrences
    that were fired was that of `amid_ms`, they are `amid_fired` so far, and its range ends before
    `amid_until`.
    """

    spec: str
    offset: int
    begun_ms: int
    origin: tuple[int, int]
    homes: int = 1
    reason: str | None = None
    state: str = RUNNING
    cursor: str = ""
    examined: int = 0
    done: int = 0
    unchanged: int = 0
    refused: int = 0
    refusals: dict[str, int] = {}  # noqa: RUF012  # never changed: each row has one of its own
    ended_ms: int | None = None
    fired: int = 0
    amid: str = ""
    amid_ms: int = 0
    amid_fired: int = 0
    amid_until: int = 0

    @property
    def matched(self) -> int:
        """How many schedules the filter has matched so far."""
        return self.done + self.unchanged + self.refused


def job_key(tenant: str, job: str) -> bytes:
    """Changelog key of a job."""
    return JOB_PREFIX + f"{tenant}/{job}".encode()


def jobs_range(tenant: bytes) -> tuple[bytes, bytes]:
    """The changelog keys between which the jobs of a tenant lie."""
    return JOB_PREFIX + tenant + b"/", JOB_PREFIX + tenant + b"0"


def names_of_job(key: bytes) -> tuple[bytes, str]:
    """Tenant and id of the job in such a key."""
    tenant, _, job = key[len(JOB_PREFIX) :].partition(b"/")
    return tenant, job.decode()


def encode_job(row: JobRow) -> bytes:
    """The row of a job."""
    said = json.dumps(row._asdict(), ensure_ascii=False, separators=(",", ":"))
    return HEAD_OF_JOB + said.encode()


def decode_job(row: bytes) -> JobRow:
    """The job in a row."""
    said = json.loads(row[len(HEAD_OF_JOB) :])
    partition, offset = said.pop("origin")
    known = {name: value for name, value in said.items() if name in JobRow._fields}
    return JobRow(origin=(partition, offset), **known)
