"""AT and AFTER: one instant, which the pending record holds, and nothing after it."""

from __future__ import annotations

from belfry.schedules.triggers.trigger import Trigger


class Once(Trigger):
    """The trigger of a one-shot schedule; its only instant is no part of its rule."""

    def first_ms(self, accepted_ms: int) -> int | None:  # noqa: ARG002  # every trigger is asked so
        """None: the request says when, not the rule."""
        return None

    def after_ms(self, nominal_ms: int) -> int | None:  # noqa: ARG002  # every trigger is asked so
        """None: it was the only one."""
        return None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:  # noqa: ARG002  # every trigger is asked so
        """Nothing follows."""
        return after_ms, 0
