"""A request and its verdict: checked, written, awaited; one at a time, or many together.

    check              refuses what any worker would refuse, without a record in Kafka
    expecting          the wait is begun before the write, so no verdict is missed
    write              the record lies in Kafka, acknowledged by all replicas
    verdict            read from belfry.lifecycle; none in time: `NoVerdict` says where the record
                       lies, and it is carried out all the same

Each request gets an id, and a verdict names it. So a caller without a verdict may write the same id
again: it is carried out once at most.

Many requests overlap their waits. With three, of which the second cannot be taken by any worker:

    check 1 2 3 ─ refused: 2 ─ expecting 1 3 ─ write 1 3 ─ yield verdict 1, refusal 2, verdict 3

Batches of them overlap as well: `AHEAD` are under way before the first verdict is waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from os import urandom
from time import monotonic, time
from typing import Any, Final, NamedTuple
from uuid import uuid4

from belfry.client.acknowledged import HandedOver
from belfry.client.answers import Answers, VerdictWait
from belfry.client.asking import rejected
from belfry.client.errors import NoVerdict, refusal
from belfry.client.portable import names_of
from belfry.client.requests import problem, request
from belfry.client.verdict import Verdict
from belfry.client.writing import RequestWriter
from belfry.wire.quick_writing import Ready

# Seconds that a verdict is waited for unless the caller says otherwise.
TIMEOUT_S: Final = 10.0
# Requests of an import that are written together, and how many such batches are under way.
TOGETHER: Final = 1_000
AHEAD: Final = 10
# A batch of more bytes than this has to reach Kafka before another one is handed over.
HEAVY_BYTES: Final = 4_000_000
# Random bytes of the ids that an import gives, as many as a UUID has.
_ID_BYTES: Final = 16


class Exchange:
    """Requests out, verdicts in; any number of threads may ask at the same time."""

    def __init__(self, writer: RequestWriter, answers: Answers) -> None:
        """Both connect at the first request."""
        self._writer = writer
        self._answers = answers

    def ask(
        self, tenant: str, schedule_id: str, action: str, options: Mapping[str, Any]
    ) -> Verdict:
        """The verdict on one request; raises the error of a verdict that says no.

        `options` are those of `belfry.client.options`. With ``wait`` False the verdict has no
        outcome yet, and says where the request lies.
        """
        request_id = options.get("request_id") or uuid4().hex
        given = {**options, "request_id": request_id}
        fields = request(tenant, schedule_id, action, given)
        sent = Verdict(tenant, schedule_id, None, request_id)
        found = problem(fields, int(time() * 1000))
        if found is not None:
            raise rejected(sent, found)
        if not options.get("wait", True):
            return self._writer.write(fields, sent)
        timeout_s = options.get("timeout_s", TIMEOUT_S)
        with self._answers.expecting(request_id) as awaited:
            sent = self._writer.write(fields, sent)
            verdict = awaited.within(timeout_s, sent)
        if verdict is None:
            raise _no_verdict(sent, timeout_s)
        refused = refusal(verdict)
        if refused is not None:
            raise refused
        return verdict

    def ask_all(
        self, all_fields: Iterable[dict[str, Any] | Ready], timeout_s: float
    ) -> Iterator[Verdict]:
        """The verdicts on whole requests, in their order, with thousands under way.

        No check here looks at a ready request. A refusal is a verdict like any other here.
        `timeout_s` is for each `TOGETHER` of them, from the verdict before it; without a verdict in
        time it raises `NoVerdict`. If `all_fields` raises an error, or a write does, the verdicts
        on the requests before it come first. Up to 2 * `TOGETHER` behind a lost one may be there
        too.
        """
        under_way: deque[_Batch] = deque()
        batches = _UntilFailure(self._begun(all_fields))
        try:
            for batch in batches:
                under_way.append(batch)
                if len(under_way) == AHEAD:
                    yield from self._verdicts(under_way.popleft(), timeout_s)
            while under_way:
                yield from self._verdicts(under_way.popleft(), timeout_s)
        finally:
            for batch in under_way:
                batch.waits.close()
        if batches.error is not None:
            raise batches.error

    def _begun(self, all_fields: Iterable[dict[str, Any] | Ready]) -> Iterator[_Batch]:
        """Requests of which each batch is handed over as it is asked for.

        The one but last has reached Kafka by then, and a heavy one before as well: two of them may
        be more than the producer holds, or than a slow line carries in time. It raises where a
        write failed, and that batch's own verdicts do so too.
        """
        requests_left = iter(all_fields)
        before: HandedOver | None = None
        while some := list(islice(requests_left, TOGETHER)):
            batch = self._begin(some)
            yield batch
            if before is not None:
                self._hear(before)
            before = batch.handed
            if before is not None and sum(before.sizes) > HEAVY_BYTES:
                self._hear(before)

    def _hear(self, handed: HandedOver) -> None:
        """Wait for what Kafka says; raises for the first that is not known to be written."""
        self._writer.hear(handed)
        if handed.failed:
            deque(self._writer.placed(handed), 0)

    def _begin(self, some: list[dict[str, Any] | Ready]) -> _Batch:
        """Hand some requests over together.

        Each wait is begun before the first write, so no verdict is missed.
        """
        judged = _judged(some)
        to_write = [
            (fields, sent)
            for fields, sent in zip(some, judged, strict=True)
            if sent.outcome is None
        ]
        with ExitStack() as waits:
            if not to_write:
                return _Batch(judged, None, [], waits)
            ids = [sent.request_id or "" for _, sent in to_write]
            awaited = waits.enter_context(self._answers.expecting_all(ids))
            return _Batch(judged, self._writer.hand_over(to_write), awaited, waits.pop_all())

    def _verdicts(self, batch: _Batch, timeout_s: float) -> Iterator[Verdict]:
        """The verdicts on a batch, in their order; `NoVerdict` if one does not come in time.

        It raises at the first of which the write failed.
        """
        with batch.waits:
            placed: Iterator[Verdict] = iter(())
            if batch.handed is not None:
                self._writer.hear(batch.handed)
                placed = self._writer.placed(batch.handed)
            written = zip(placed, batch.awaited, strict=True)
            deadline = monotonic() + timeout_s
            for refused_or_sent in batch.judged:
                if refused_or_sent.outcome is not None:
                    yield refused_or_sent
                    continue
                sent, answer = next(written)
                verdict = answer.within(deadline - monotonic(), sent)
                if verdict is None:
                    raise _no_verdict(sent, timeout_s)
                yield verdict


class _Batch(NamedTuple):
    """Requests that were judged; those that were handed over, each with its wait."""

    judged: list[Verdict]
    handed: HandedOver | None
    awaited: list[VerdictWait]
    waits: ExitStack


class _UntilFailure:
    """Batches up to their end, or up to an error, which is kept."""

    def __init__(self, batches: Iterator[_Batch]) -> None:
        self._batches = batches
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[_Batch]:
        try:
            yield from self._batches
        except Exception as error:  # noqa: BLE001  # raised behind the verdicts
            self.error = error


def _judged(some: list[dict[str, Any] | Ready]) -> list[Verdict]:
    """The judgement on each request before it is written: a refusal, or its id."""
    now_ms = int(time() * 1000)
    # New ids each time: a repeat has to get the present state, not the answer of before.
    size = 2 * _ID_BYTES
    ids = urandom(_ID_BYTES * len(some)).hex()
    found: list[Verdict] = []
    for number, asked in enumerate(some):
        tenant, schedule_id = names_of(asked)
        sent = Verdict.made(
            tenant=tenant, schedule_id=schedule_id, outcome=None,
            request_id=ids[number * size : (number + 1) * size],
        )  # fmt: skip
        if isinstance(asked, dict):
            asked["request_id"] = sent.request_id
            wrong = problem(asked, now_ms)
            sent = sent if wrong is None else rejected(sent, wrong).verdict
        found.append(sent)
    return found


def _no_verdict(sent: Verdict, timeout_s: float) -> NoVerdict:
    """The error for a request in Kafka without a verdict: where it lies, and what to do."""
    return NoVerdict(
        f"No verdict on {sent.name} within {timeout_s:g} s. The request lies in"
        f" {sent.source_topic}, partition {sent.source_partition}, offset {sent.source_offset},"
        " and is carried out as soon as a worker takes it in. Check that one runs (`belfry"
        f" doctor`); asking again with request id {sent.request_id} is safe.",
        sent.request_id or "",
    )
