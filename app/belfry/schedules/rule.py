"""The rule of a schedule as other rooms ask for it: the value, its bytes at rest, and its kinds.

`triggers/rule.py` has the value, `triggers/encoding.py` the bytes, `triggers/registry.py` the
kinds.  Here the rule is made that a request asks for.

A rule goes through three forms, and only the first one is checked:

    request   {"kind": "EVERY", "interval_ms": 60000, …}      a dictionary, checked by `checks`
    Rule      Rule("EVERY", 60000, …)                          a frozen value
    bytes     01 02 00 01 00 00 00 00 00 00 ea 60              in the schedule's pending record

The engine makes the rule of a request once, when it accepts the request.  From then on it works
with the bytes: it compares them to see whether an update changes anything, and makes triggers of
them (`triggers.trigger_of`).  Rooms outside import these names from here and not from `triggers/`,
so that the modules below may be cut in another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from belfry.schedules.targets import encode_targets, target_of
from belfry.schedules.triggers import registry
from belfry.schedules.triggers.cron_spelling import is_hashed, seed_of
from belfry.schedules.triggers.encoding import (
    FORMAT,
    READS,
    TARGETS_BIT,
    decode_rule,
    encode_rule,
    has_calendar,
    has_targets,
    leaves_out,
    targets_in,
    without_targets,
)
from belfry.schedules.triggers.registry import ONE_SHOT, RECURRING, ZONED
from belfry.schedules.triggers.rule import (
    DEFAULT_LATENESS_MS,
    OVERLAPS,
    POLICIES,
    Rule,
)

if TYPE_CHECKING:
    from belfry.schedules.request import Request

__all__ = [
    "DEFAULT_ACK_TIMEOUT_MS",
    "DEFAULT_LATENESS_MS",
    "FORMAT",
    "KINDS",
    "ONE_SHOT",
    "OVERLAPS",
    "POLICIES",
    "READS",
    "RECURRING",
    "TARGETS_BIT",
    "WAITING_OVERLAPS",
    "ZONED",
    "Rule",
    "awaits",
    "decode_rule",
    "encode_rule",
    "has_calendar",
    "has_targets",
    "leaves_out",
    "rule_of",
    "targets_in",
    "without_targets",
]

# Names of the kinds by their codes at rest, which have no gap.
KINDS: Final = tuple(registry.BY_CODE[code].name for code in range(len(registry.BY_CODE)))
# Overlap policies under which an occurrence waits for a fire that nobody has acknowledged yet, is
# given up because of it, or ends it.
WAITING_OVERLAPS: Final = frozenset(OVERLAPS) - {"", "ALLOW"}
DEFAULT_ACK_TIMEOUT_MS: Final = 300_000


def rule_of(request: Request, days: bytes | None = None) -> Rule:
    """The rule that a checked request asks for; `days` are those of its calendar, at rest.

    Without `days` the rule has no calendar, even where the request names one: checks and previews
    ask so for the rule below the calendar.  Fields that mean nothing for the request's kind are
    left out of the rule, so two requests that differ only in them have equal rules.

    KeyError for a kind that the registry does not have; the checks refuse such a request before.
    """
    kind, targets = registry.KINDS[request["kind"]], request["http_targets"]
    recurs = kind.name in RECURRING
    except_cron = request["except_cron"] if recurs else None
    calendar = request["calendar"] if recurs else None
    return Rule(
        kind=kind.name,
        when=kind.asked(request) if recurs else None,
        timezone=request["timezone"] if kind.zoned or except_cron or calendar else None,
        start_at=request["start_at"] if recurs else None,
        end_at=request["end_at"] if recurs else None,
        max_fires=request["max_fires"] if recurs else None,
        misfire=request["misfire"],
        max_lateness_ms=request["max_lateness_ms"],
        overlap=request["overlap"] if recurs else None,
        serial=request["serial"] or None,
        ack_timeout_ms=request["ack_timeout_ms"],
        except_cron=except_cron,
        calendar=None if days is None else calendar,
        on_holiday=None if days is None else request["on_holiday"],
        packed_days=None if calendar is None else days,
        seed=_seed(request),
        max_wait_ms=request["max_wait_ms"],
        concurrency=request["concurrency"],
        awaited=kind.asked(request) if kind.depends else None,
        ack_delay_ms=request["ack_delay_ms"],
        latest_at=request["latest_at"],
        priority=request["priority"] or None,
        targets=encode_targets(map(target_of, targets)) if targets else None,
    )


def _seed(request: Request) -> int | None:
    """The seed of the numbers that H stands for, or None where the expression has no H.

    Only an expression with an H has a seed, so all other schedules of one expression have equal
    bytes, and share one trigger.
    """
    text = request["cron"] if request["kind"] == "CRON" else None
    if text is None or not is_hashed(text):
        return None
    # A preview may have no names yet.
    names: Any = request
    return seed_of(names.get("tenant", ""), names.get("schedule_id", ""))


def awaits(encoded: bytes) -> bool:
    """Whether something waits until a fire of this rule is acknowledged.

    That is the schedule itself (overlap SKIP or QUEUE_ONE) or its group (`serial`, `concurrency`).
    The engine then keeps an ack lock for each fire (`engine/ack_locks.py`).
    """
    rule = decode_rule(encoded)
    return bool(rule.at_once) or rule.overlap in WAITING_OVERLAPS
