"""Dead letters: records that were put back and cannot be tried again, for their tenants to read.

    refused ─┬─► belfry.rejected                 every refusal of all tenants, as it was sent
             └─► belfry.dead-letters.<tenant>    the same record, where such a topic is there, and
                                                 the record came with `belfry-retry`

A consumer has handed such a record over and committed its offset, so its tenant has to be able to
find it, without rights on records of others.  Both records are in the transaction of the step.

A letter is written where a request is known to be its tenant's and to be at home: a request that is
not signed as it should be, or cannot be read, lies in `belfry.rejected` alone.  So does a letter
while its topic cannot be written to: nobody else waits for it.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Letter
from belfry.engine.rejected_record import as_rejected
from belfry.engine.reply import Reply
from belfry.engine.reports import Reports
from belfry.engine.step import Step
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.tenants.effective import Tenant
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.record import SourceRecord, size_of
from belfry.wire.retries import is_put_back, letter_headers

# The most bytes of the headers that say why.
WHY_BYTES: Final = 12_000


class DeadLetters:
    """Refuses requests of one partition, and writes dead letters into effects."""

    def __init__(self, tenants: StepTenants, reports: Reports) -> None:
        self._tenants = tenants
        self._reports = reports

    def refuse(
        self,
        record: SourceRecord,
        request: Request,
        tenant: Tenant,
        why: Rejection,
        asked_ms: int,
        step: Step,
    ) -> Reply:
        """Refuse a request that is at home and its tenant's; the tenant gets it if it was put back.

        A repeat is no second letter.  One that the topic does not take whole is cut, and says so.
        """
        reply = self._reports.refuse(record, request, why, asked_ms, step)
        if reply.outcome is Outcome.REJECTED and is_put_back(record[4]):
            topic, most_bytes = self._tenants.letters_of(tenant.name)
            if most_bytes > WHY_BYTES:
                self._write(record, tenant, why, (topic, most_bytes - WHY_BYTES), step)
        return reply

    def _write(
        self,
        record: SourceRecord,
        tenant: Tenant,
        why: Rejection,
        room: tuple[str, int],
        step: Step,
    ) -> None:
        """Write a letter of at most so many bytes; `retry-attempt` is how often it has failed."""
        topic, most_bytes = room
        counted = (*record[:4], letter_headers(record[4]))
        letter = as_rejected(counted, why, self._reports.origin(record), tenant.name, most_bytes)
        step.effects.letters.append(Letter(topic, *letter))
        step.effects.room -= min(size_of(record), most_bytes)
