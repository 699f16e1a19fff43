"""Targets that are topics of belfry's own cluster: `kafka:` and the name of a topic.

    kafka:payments.audit     good, where `allowed_hosts` has an entry of the very same text

Nothing is allowed by silence: belfry may write to topics that a tenant may not, so each topic is
named by the platform, which alone sets `allowed_hosts`.  Reserved names stay refused all the same.

Fields that only HTTP can carry out (headers, a secret to sign with, a time-out) are refused rather
than ignored.  A target stands for itself alone, so that targets that are tried together are of one
kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from belfry.schedules.target_kinds.kind import Judge, TargetKind
from belfry.schedules.targets import MAX_ATTEMPTS, HttpTarget

SCHEME: Final = "kafka:"
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PLAIN: Final = HttpTarget("")


def topic_of(url: str) -> str:
    """The topic that an address names; empty where it names none."""
    topic = url.removeprefix(SCHEME)
    if topic == url or topic in (".", "..") or _TOPIC.fullmatch(topic) is None:
        return ""
    return topic


class KafkaTargetKind(TargetKind):
    """Addresses that name topics."""

    name = "kafka"

    def knows(self, url: str) -> bool:
        """Whether it begins with `kafka:`."""
        return url.startswith(SCHEME)

    def place(self, url: str) -> str:
        """The address itself, so that an entry for a topic is never taken for a host."""
        return url if topic_of(url) else ""

    def share(self, url: str) -> str:
        """The topic, by its address."""
        return url

    def problems(self, target: HttpTarget) -> list[str]:
        """A topic's name, attempts within their bounds, and nothing that only HTTP can do."""
        shown = repr(target.url[:200])
        found = []
        if not topic_of(target.url):
            found.append(
                f"url {shown} of a target names no topic: write kafka: and 1-249 of A-Z a-z 0-9 ."
                " _ -, such as kafka:payments.audit."
            )
        if not 0 <= target.max_attempts <= MAX_ATTEMPTS:
            found.append(
                f"max_attempts of {shown} is {target.max_attempts}; 0 to {MAX_ATTEMPTS} is allowed."
            )
        if target.strategy != "ALL":
            found.append(
                f"strategy of {shown} is {target.strategy}; a topic takes ALL: name it beside the"
                " targets over HTTP, and it gets each event."
            )
        return found + [
            f"{field} of {shown} is for targets over HTTP; leave it out."
            for field in ("timeout_ms", "secret_ref", "headers")
            if getattr(target, field) != getattr(_PLAIN, field)
        ]

    def allows(self, place: str, entries: Sequence[str]) -> bool:
        """Whether the very address is an entry; without entries no topic is allowed."""
        return place in entries

    def refused(self, place: str, judge: Judge) -> str | None:
        """Why the topic is kept from a tenant: it is belfry's, Kafka's or another tenant's."""
        topic = topic_of(place)
        return judge(topic) if topic else None


KAFKA: Final = KafkaTargetKind()
