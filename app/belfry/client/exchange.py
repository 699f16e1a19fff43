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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from time import monotonic, time
from typing import Any, Final
from uuid import uuid4

from belfry.client.answers import Answers
from belfry.client.asking import rejected
from belfry.client.errors import NoVerdict, refusal
from belfry.client.requests import problem, request
from belfry.client.verdict import Verdict
from belfry.client.writing import RequestWriter

# Seconds that a verdict is waited for unless the caller says otherwise.
TIMEOUT_S: Final = 10.0
# Requests of an import that are under way together.
TOGETHER: Final = 250


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

    def ask_all(self, all_fields: Iterable[dict[str, Any]], timeout_s: float) -> Iterator[Verdict]:
        """The verdicts on whole requests, some hundred at a time, in their order.

        A refusal is a verdict like any other here. `timeout_s` is for each `TOGETHER` of them;
        without a verdict in time it raises `NoVerdict`.
        """
        requests_left = iter(all_fields)
        while some := list(islice(requests_left, TOGETHER)):
            yield from self._ask_some(some, timeout_s)

    def _ask_some(self, some: list[dict[str, Any]], timeout_s: float) -> Iterator[Verdict]:
        """Write some requests together, and yield their verdicts in their order.

        `timeout_s` is for all of them. Each wait is begun before the first write, so no verdict is
        missed.
        """
        judged = [_judged(fields) for fields in some]
        to_write = [
            (fields, sent)
            for fields, sent in zip(some, judged, strict=True)
            if sent.outcome is None
        ]
        if not to_write:
            yield from judged
            return
        with ExitStack() as waits:
            awaited = [
                waits.enter_context(self._answers.expecting(sent.request_id or ""))
                for _, sent in to_write
            ]
            under_way = iter(zip(self._writer.write_all(to_write), awaited, strict=True))
            deadline = monotonic() + timeout_s
            for refused_or_sent in judged:
                if refused_or_sent.outcome is not None:
                    yield refused_or_sent
                    continue
                sent, answer = next(under_way)
                verdict = answer.within(deadline - monotonic(), sent)
                if verdict is None:
                    raise _no_verdict(sent, timeout_s)
                yield verdict


def _judged(fields: dict[str, Any]) -> Verdict:
    """The judgement on a request before it is written: a refusal, or its id."""
    # A new one each time: a repeat has to get the present state, not the answer of before.
    fields["request_id"] = uuid4().hex
    sent = Verdict(fields["tenant"], fields["schedule_id"], None, fields["request_id"])
    found = problem(fields, int(time() * 1000))
    return sent if found is None else rejected(sent, found).verdict


def _no_verdict(sent: Verdict, timeout_s: float) -> NoVerdict:
    """The error for a request in Kafka without a verdict: where it lies, and what to do."""
    return NoVerdict(
        f"No verdict on {sent.name} within {timeout_s:g} s. The request lies in"
        f" {sent.source_topic}, partition {sent.source_partition}, offset {sent.source_offset},"
        " and is carried out as soon as a worker takes it in. Check that one runs (`belfry"
        f" doctor`); asking again with request id {sent.request_id} is safe.",
        sent.request_id or "",
    )
