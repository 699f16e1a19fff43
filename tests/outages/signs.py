"""What tells of an outage, how soon, and in which words: alert, readiness, page, doctor, log.

Each sign is a pattern, since something always changes in an outage: only words that tell of this
one count.  A sign that is there before the outage is planted proves nothing, and is an error.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.acceptance.harness.prometheus import Prometheus
from tests.acceptance.harness.site import Site
from tests.acceptance.harness.worker import Worker

LOOK_S: Final = 1.0
BAD: Final = ("problem", "risk")
ACTIVE: Final = ("pending", "firing")
# Up to the tenants, where there are any: their names alone say nothing.
MAIN: Final = re.compile(r'<div id="live"(.*?)(?:id="tenants-title|</main>)', re.DOTALL)
ENDS: Final = re.compile(r"</li>|</p>|</h2>")
TAG: Final = re.compile(r"<[^>]+>")
DOCTOR_S: Final = 60.0
CALM_S: Final = 90.0


class Signs(NamedTuple):
    """Patterns of what has to be said; empty where nothing is expected to be said there."""

    alert: str
    ready: str
    page: str
    doctor: str
    log: str


@dataclass
class Told:
    """What was said, and how many seconds after the outage began."""

    seconds: float
    text: str


@dataclass
class Seen:
    """All that was said in an outage, by sign; alerts with how long they have to last."""

    name: str
    told: dict[str, Told] = field(default_factory=dict)
    early: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class Watch:
    """Asks all signs of one belfry: its two workers, its Prometheus, its operator."""

    def __init__(self, site: Site, prometheus: Prometheus) -> None:
        self._site = site
        self._prometheus = prometheus

    def outage(self, name: str, signs: Signs, plant: Callable[[], object], limit_s: float) -> Seen:
        """Plant an outage, and wait for all its signs, or for the limit."""
        seen = Seen(name)
        begins = {worker.log: self._size(worker) for worker in self._site.workers}
        wanted = {sign: re.compile(said) for sign, said in signs._asdict().items() if said}
        seen.early = self._early(wanted, begins)
        began = time.monotonic()
        plant()
        while wanted and time.monotonic() - began < limit_s:
            for sign, pattern in [*wanted.items()]:
                text = self._says(sign, pattern, begins)
                if text:
                    seen.told[sign] = Told(time.monotonic() - began, text)
                    del wanted[sign]
            time.sleep(LOOK_S)
        seen.missing = sorted(wanted)
        return seen

    def _early(
        self, wanted: Mapping[str, re.Pattern[str]], begins: Mapping[Path, int]
    ) -> list[str]:
        """Signs that are there although nothing is planted, once those of before have gone."""
        deadline = time.monotonic() + CALM_S
        while True:
            found = [
                sign
                for sign, pattern in wanted.items()
                if sign != "log" and self._says(sign, pattern, begins)
            ]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(LOOK_S)

    def calm(self, limit_s: float = 240.0) -> None:
        """Wait until both workers are ready, and each knows of the other one.

        One that was unfit for a second time asks for no partitions for two minutes.
        """
        deadline = time.monotonic() + limit_s
        while not all(self._calm(worker) for worker in self._site.workers):
            assert time.monotonic() < deadline, [each.get("/healthz/ready")[1] for each in
                                                 self._site.workers]  # fmt: skip
            time.sleep(LOOK_S)

    def _calm(self, worker: Worker) -> bool:
        if not worker.ready:
            return False
        cluster = json.loads(worker.get("/v1/cluster")[1] or "{}")
        members = cluster.get("members", [])
        return (
            len(members) == len(self._site.workers)
            and not cluster["silent"]
            and all(each["owns"] and each["stands_by"] for each in members)
        )

    def _says(self, sign: str, pattern: re.Pattern[str], begins: Mapping[Path, int]) -> str:
        ask: dict[str, Callable[[], list[str]]] = {
            "alert": self._alerts,
            "ready": self._ready,
            "page": self._page,
            "doctor": self._doctor,
            "log": lambda: self._logs(begins),
        }
        return next((line for line in ask[sign]() if pattern.search(line)), "")

    def _alerts(self) -> list[str]:
        rules = [rule for rule in self._prometheus.rules() if rule["state"] in ACTIVE]
        return [
            f"{rule['name']} (after {rule['duration']:.0f} s more): {_summary(rule)}"
            for rule in rules
        ]

    def _ready(self) -> list[str]:
        found: list[str] = []
        for worker in self._site.workers:
            status, body = worker.get("/healthz/ready")
            answer = json.loads(body) if body.startswith("{") else {}
            said = [*answer.get("problems", []), *answer.get("warnings", [])]
            said += [each["missing"] for each in answer.get("partitions", []) if each["missing"]]
            said += [
                f"{each['tenant']} waits ({each['cause']}): {each['reason']}"
                for each in answer.get("tenants_waiting") or []
            ]
            found += [f"{status}: {each}" for each in said] or [f"{status}"]
        return found

    def _page(self) -> list[str]:
        found: list[str] = []
        for worker in self._site.workers:
            said = MAIN.search(worker.get("/")[1])
            items = ENDS.split(said[1]) if said else []
            found += [" ".join(html.unescape(TAG.sub("", each)).split()) for each in items]
        return found

    def _doctor(self) -> list[str]:
        first = self._site.workers[0]
        env = {**os.environ, **first.settings}
        env["BELFRY_HTTP_URL"] = f"http://127.0.0.1:{first.http_port}"
        command = [sys.executable, "-m", "belfry.cli", "doctor", "--output", "jsonl"]
        ran = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=DOCTOR_S
        )
        checks = [json.loads(line) for line in ran.stdout.splitlines()]
        return [
            f"{each['check']}: {each['detail']} To do: {each['to_do'] or '-'}"
            for each in checks
            if each["status"] in BAD
        ]

    def _logs(self, begins: Mapping[Path, int]) -> list[str]:
        found = []
        for worker in self._site.workers:
            with worker.log.open("rb") as file:
                file.seek(begins.get(worker.log, 0))
                found += file.read().decode(errors="replace").splitlines()
        return found

    def _size(self, worker: Worker) -> int:
        return worker.log.stat().st_size if worker.log.exists() else 0


def _summary(rule: Mapping[str, Any]) -> str:
    alerts = rule["alerts"]
    return str(alerts[0]["annotations"]["summary"]) if alerts else ""
