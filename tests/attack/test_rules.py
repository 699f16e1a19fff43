"""Rules that cannot be read, by docs/rejections.md and docs/schedules.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.attack.family import Attack, judge
from tests.attack.records import TAKEN, Engines, Record, asked

FIELDS: Final = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day", 1, 31),
    ("month", 1, 12),
    ("weekday", 0, 7),
)
HUGE: Final = ("99999999999999999999", "1e3", "0x1", "1.5", "\u0661", "+1", "-1", "1_0")
TEXTS: Final = (
    "x",
    "*x",
    "**",
    "*/",
    "/5",
    "1-",
    "-",
    ",",
    "1,",
    ",1",
    "1,,2",
    "?x",
    "$(id)",
    "1\x00",
)

UNREADABLE: Final = (
    "",
    " ",
    "*",
    "* * * *",
    "* * * * * * * *",
    "0 * * * * * 1969",
    "@never",
    "@every",
    "@every 90",
    "@every 0s",
    "@every 101y",
    "H(9-5) * * * *",
    "H/0 * * * *",
    "0 0 32W * *",
    "0 0 L-31 * *",
    "0 0 L-3L * *",
    "0 0 * * LW",
    "0 0 31W 2 *",
    "@reboot",
    "\n",
    "* * * * *" * 50,
)
READABLE: Final = (
    "* * * * *",
    "0 9 * * MON",
    "*/15 8-18 * * *",
    "@daily",
    "0 0 29 2 *",
    "0 0 L * *",
    f"*/{'9' * 30} * * * *",
    "H H(1-5) 15W,L-3 * *",
    "0 0 0 L-3W * FRIL 2040/5",
    "@every 90s",
)


def crons() -> Iterator[Attack[Record]]:
    """A field out of its range, or that is none, at each place of an expression."""
    for place, (name, least, most) in enumerate(FIELDS):
        bad = [str(most + 1), f"{most + 1}-{most + 2}", f"{most}-{least}", f"{least}-{most + 1}"]
        bad += ["*/0", f"{least}/0", "*/-1", "1-2-3", *HUGE, *TEXTS]
        if least == 1:
            bad.append("0")
        if name == "weekday":
            bad += ["MON#0", "MON#6", "FOO", "8L", "MON#", "#1"]
        if name == "month":
            bad += ["FOO", "JANUARY", "JAN-", "MON"]
        for text in sorted(set(bad)):
            parts = ["*"] * 5
            parts[place] = text
            yield cron(f"{name} {text!r}", " ".join(parts), "bad_cron")
    for text in UNREADABLE:
        yield cron(f"{text[:20]!r} of {len(text)}", text, "bad_cron")
    # Days that no month has are told as a mistake in the expression.
    for text in ("0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *"):
        yield cron(text, text, "bad_cron")
    for text in READABLE:
        yield cron(text, text, TAKEN)
    for zone in (
        "/etc/passwd",
        "../UTC",
        "UTC\x00",
        "CEST",
        "+02:00",
        "europe/paris",
        " ",
        "a" * 300,
    ):
        attack = asked(
            f"zone {zone[:20]!r}",
            "bad_timezone",
            kind="CRON",
            at=None,
            cron="@daily",
            timezone=zone,
        )
        yield attack


def cron(name: str, text: str, right: str) -> Attack[Record]:
    """A rule by a cron expression."""
    return asked(f"cron {name}", right, kind="CRON", at=None, cron=text)


def test_rules() -> None:
    judge(crons(), Engines(), 150)
