"""Verdicts at rest: the outcome of a request that has an id, for repeats of it.

    answered  format row sizes │ at due version generation │ digest │ outcome code action schedule
    verdict   format row size 0 │ at due version │ outcome code          written by older releases

A digest of the request lies beside the answer, so that another request under the same id is told
from a repeat; action and schedule name the first one in the answer to the second.  Both rows are
kept for an hour, in the changelog and in the local store alike.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.schedules.request import PlainRequest
from belfry.store.layout.records import ANSWERED, FORMAT, VERDICT

_VERDICT: Final = Struct(">BBBBqqI")
# format, row, sizes of outcome and code, at, due, version, generation, digest, sizes of action, id
_ANSWERED: Final = Struct(">BBBBqqIQ16sBB")

# How rows begin that need no closer look in a replay.
HEAD_OF_ANSWERED: Final = bytes((FORMAT, ANSWERED))
# Says that an answer is about no life: 0 is the one that offset 0 of partition 0 began.
NO_LIFE: Final = 2**64 - 1
# Bytes that an answer keeps of a name.
MOST_NAMED: Final = 255
# How long the id of a request is known.
REQUEST_ID_MS: Final = 3_600_000


class VerdictRow(NamedTuple):
    """The outcome of a request that has an id: `outcome` is its name.

    An empty `digest` says that an older release wrote it, which did not keep a digest of the
    request.
    """

    outcome: str
    at_ms: int
    due_ms: int | None
    version: int | None
    code: str
    digest: bytes = b""
    action: str = ""
    schedule_id: str = ""
    generation: int | None = None


def is_answer(row: bytes) -> bool:
    """Whether a row is the verdict of a request."""
    return row[1] in (ANSWERED, VERDICT)


def encode_verdict(row: VerdictRow) -> bytes:
    """The record of a request's verdict."""
    outcome, code = row.outcome.encode(), row.code.encode()
    due_ms = -1 if row.due_ms is None else row.due_ms
    if not row.digest:
        head = _VERDICT.pack(FORMAT, VERDICT, len(outcome), 0, row.at_ms, due_ms, row.version or 0)
        return head + outcome + code
    # A name in a refused request may have any length.
    action = row.action.encode(errors="replace")[:MOST_NAMED]
    schedule_id = row.schedule_id.encode(errors="replace")[:MOST_NAMED]
    head = _ANSWERED.pack(
        FORMAT, ANSWERED, len(outcome), len(code), row.at_ms, due_ms, row.version or 0,
        NO_LIFE if row.generation is None else row.generation, row.digest, len(action),
        len(schedule_id),
    )  # fmt: skip
    return b"".join((head, outcome, code, action, schedule_id))


def encode_accepted(request: PlainRequest, at_ms: int, generation: int, digest: bytes) -> bytes:
    """The record of the verdict on a plain request that began a schedule: that of `encode_verdict`,
    with less to pass on."""
    schedule_id = request[1]
    head = _ANSWERED.pack(
        FORMAT, ANSWERED, 8, 0, at_ms, request[2], 1, generation, digest, 6, len(schedule_id)
    )
    return b"%bACCEPTEDUPSERT%b" % (head, schedule_id)


def decode_verdict(record: bytes) -> VerdictRow:
    """A request's verdict in a record, of this release or an older one."""
    if record[1] == ANSWERED:
        return _answered(record)
    _, _, size, _, at_ms, due_ms, version = _VERDICT.unpack_from(record)
    end = _VERDICT.size + size
    return VerdictRow(
        record[_VERDICT.size : end].decode(),
        at_ms,
        None if due_ms < 0 else due_ms,
        version or None,
        record[end:].decode(),
    )


def _answered(record: bytes) -> VerdictRow:
    (_, _, outcome_n, code_n, at_ms, due_ms, version, generation, digest, action_n, id_n,
    ) = _ANSWERED.unpack_from(record)  # fmt: skip
    a = _ANSWERED.size + outcome_n
    b = a + code_n
    c = b + action_n
    return VerdictRow(
        record[_ANSWERED.size : a].decode(),
        at_ms,
        None if due_ms < 0 else due_ms,
        version or None,
        record[a:b].decode(),
        digest,
        record[b:c].decode(errors="replace"),
        record[c : c + id_n].decode(errors="replace"),
        None if generation == NO_LIFE else generation,
    )
