"""Secrets that headers of targets name, read by the process that delivers at each attempt.

    policy or request   authorization: Bearer ${file:/etc/belfry/shop-token}      kept as it stands
    fire                the delivery says which references its tenant may name
    attempt             authorization: Bearer 3f9c…                               read now, posted

So a secret is in no topic, and a new one counts from the next attempt on.

They come from the same two places as the secrets that requests are signed with, with the same
bounds (`policies/secrets.py`), and only the first line of each is used. A value is used again for a
second, so that a burst does not read a file a thousand times.

Which references a tenant may name was decided when its event fired, and stands in the delivery.
Somebody who could write a delivery could name any of them, so none is read unless deliveries have
to be signed: first attempts are written by workers alone, and retries are signed with the secret
that workers share.

The process that only posts has neither the variables nor, maybe, the files. So its parent reads
them, and hands them over with the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Final

import structlog

from belfry.delivery.http_requests import NoSecret
from belfry.delivery.work import Work
from belfry.policies.secrets import BadSecret, SecretPlaces
from belfry.schedules.header_secrets import filled, references_of
from belfry.telemetry.limited import LimitedLogger

# Seconds for which a secret that was read is used again, and how many are kept.
FRESH_S: Final = 1.0
MOST_KEPT: Final = 10_000
# Printable ASCII without blanks at its ends (RFC 9110, field values).
_VISIBLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
UNSIGNED: Final = (
    "secrets in headers of targets need BELFRY_HTTP_WORKER_SECRET on all workers and processes that"
    " deliver: without it, each writer of requests could make a delivery that names any of them"
)

log = structlog.get_logger(__name__)


class References:
    """Puts secrets in the place of references, each one read anew after `FRESH_S`."""

    def __init__(
        self,
        places: SecretPlaces | None = None,
        *,
        trusted: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`places` is None if only values that came with the work are known.

        `trusted` says that only workers can make a delivery.
        """
        self._places = places
        self._trusted = trusted
        self._clock = clock
        self._kept: dict[str, tuple[float, str]] = {}
        self._faults = LimitedLogger(log)

    def value(self, work: Work, value: str) -> str:
        """A header's value as it is sent; `NoSecret` where a secret of it cannot be had."""
        return filled(value, lambda reference: self._secret(work, reference))

    def handed_over(self, work: Work) -> Work:
        """The work with the secrets that its headers name, as far as they can be read."""
        named = [each for target in work.state.targets for each in references_of(target.headers)]
        found: dict[str, str] = {}
        for reference in named:
            try:
                found[reference] = self._secret(work, reference)
            except NoSecret as error:
                self._faults.warning(
                    "no_secret", "a target's secret cannot be read", tenant=work.event.tenant,
                    problem=str(error),
                )  # fmt: skip
        return replace(work, secrets=found) if found else work

    def _secret(self, work: Work, reference: str) -> str:
        if reference not in work.state.refs:
            raise NoSecret(f"the tenant's policy did not allow {reference} when the event fired")
        if reference in work.secrets:
            return work.secrets[reference]
        if self._places is None:
            raise NoSecret(f"the process that delivers cannot read {reference}: its log says why")
        if not self._trusted:
            raise NoSecret(UNSIGNED)
        return self._read(self._places, reference)

    def _read(self, places: SecretPlaces, reference: str) -> str:
        read_s, secret = self._kept.get(reference, (-FRESH_S, ""))
        if self._clock() - read_s < FRESH_S and secret:
            return secret
        try:
            secret = places.read(reference)[0].decode("ascii")
        except BadSecret as error:
            raise NoSecret(str(error)) from None
        except UnicodeDecodeError:
            secret = ""
        if _VISIBLE.fullmatch(secret) is None:
            raise NoSecret(f"the secret of {reference} is no printable ASCII, as headers need it")
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[reference] = (self._clock(), secret)
        return secret


NOWHERE: Final = References()
