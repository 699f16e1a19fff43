"""``belfry doctor``: rights that a worker with the same credentials would lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.kafka.lacking import Lacking
    from belfry.settings import SharedSettings


def rights_checks(found: Sequence[Lacking], settings: SharedSettings) -> Iterator[Check]:
    """One line for each right that is missing, or one that says that none is.

    Who asks may be somebody else than the workers, so what is missing is a risk and no problem.
    """
    from belfry.kafka.denials import user_of

    for each in found:
        detail = f"{each.problem}, as a worker with these credentials has to."
        yield Check("rights", Status.RISK, detail, each.cure)
    if not found:
        user = user_of(settings.kafka_properties())
        yield Check("rights", Status.OK, f"User:{user} has the rights of a worker.")
