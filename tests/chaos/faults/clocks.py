"""A worker's clock is set: forward, back, and by less than the guard minds.

A step beyond the tolerance pauses firing until the clock is right again; a smaller one holds firing
back.  Either way nothing may be early by the broker's clock, which the audit judges.  Requests that
come while a clock is hours off mean what they would mean otherwise.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final

from tests.acceptance.harness.evidence import rfc3339
from tests.acceptance.harness.site import wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.scene import Scene

BEYOND_MS = 3_000
WITHIN_MS = 250
DRIFT_STEPS: Final = 150
DRIFT_EVERY_S: Final = 0.1
HOURS_MS: Final = 2 * 3_600_000
# Enough that their homes are on several partitions, the victim's among them.
ASKING: Final = 8
RHYTHM_MS: Final = 2_000
CRON_MS: Final = 5_000
FIRES: Final = 3
# The victim gives its partitions away, and asks for them again after a minute.
PATIENCE_S: Final = 120.0


def forward(scene: Scene) -> str:
    """Three seconds ahead: the guard pauses firing."""
    return _step(scene, BEYOND_MS)


def back(scene: Scene) -> str:
    """Three seconds behind: the guard pauses firing."""
    return _step(scene, -BEYOND_MS)


def a_little(scene: Scene) -> str:
    """A quarter of a second ahead: nothing pauses, and nothing may be early."""
    scene.gather()
    scene.clock.put(WITHIN_MS)
    try:
        skew = wait_for(
            "the skew to be measured",
            lambda: found if (found := value(scene.victim, "belfry_clock_skew_seconds")) else 0.0,
        )
        assert skew > WITHIN_MS / 1000 / 2, skew
    finally:
        scene.clock.put(0)
    scene.wait_calm()
    return f"{WITHIN_MS} ms ahead; measured {skew * 1000:.0f} ms"


def drifts(scene: Scene) -> str:
    """The clock gains a millisecond in every hundred, as one that is set right slowly, and back."""
    scene.gather()
    ahead_ms = 0
    try:
        for step_ms in (1, -1):
            for _ in range(DRIFT_STEPS):
                ahead_ms += step_ms
                scene.clock.put(ahead_ms)
                time.sleep(DRIFT_EVERY_S)
            if step_ms > 0:
                measured = value(scene.victim, "belfry_clock_skew_seconds")
    finally:
        scene.clock.put(0)
    assert measured > DRIFT_STEPS / 1000 / 2, measured
    scene.wait_calm()
    return f"{DRIFT_STEPS} ms ahead, by and by; measured {measured * 1000:.0f} ms"


def hours_off(scene: Scene) -> str:
    """Hours ahead, then hours behind, while requests of all kinds come: all mean what they say."""
    found = [_hours(scene, by_ms) for by_ms in (HOURS_MS, -HOURS_MS)]
    return f"2 h ahead and behind; {found} requests were taken in by that clock's worker"


def _hours(scene: Scene, by_ms: int) -> int:
    scene.gather()
    word = "ahead" if by_ms > 0 else "behind"
    tenants = [f"{word}-{number}" for number in range(ASKING)]
    scene.others += tenants
    scene.site.fired_topics(tenants)
    before = _accepted(scene.victim)
    scene.clock.put(by_ms)
    try:
        came = {tenant: _ask_all(scene, tenant) for tenant in tenants}
        wait_for("firing to pause", lambda: value(scene.victim, "belfry_firing_paused") == 1.0)
        wait_for("all to be taken in", lambda: _all_accepted(scene, tenants), PATIENCE_S)
        taken_in = _accepted(scene.victim) - before
        assert taken_in > 0, "no request was read by the worker whose clock is wrong"
    finally:
        scene.clock.put(0)
    scene.wait_calm()
    for tenant, asked in came.items():
        expected = _instants(asked)
        fired = scene.site.wait_fired(tenant, len(expected), PATIENCE_S)
        found = sorted((r.header("belfry-scheduled-at") or b"").decode() for r in fired)
        assert found == expected, f"{tenant}: fired for {found}, and not for {expected}"
    _repeat(scene, tenants)
    return int(taken_in)


def _ask_all(scene: Scene, tenant: str) -> dict[str, int]:
    """A request of each kind; when the broker had it, by kind."""
    kinds: dict[str, dict[str, Any]] = {
        "EVERY": {"interval_ms": RHYTHM_MS, "max_fires": FIRES, "misfire": "FIRE_ALL"},
        "CRON": {"cron": "*/5 * * * * *", "max_fires": FIRES, "misfire": "FIRE_ALL"},
        "AFTER": {"delay_ms": RHYTHM_MS},
    }
    return {
        kind: scene.site.ask(
            tenant, kind, kind=kind, request_id=f"{tenant}/{kind}", payload=b"", **fields
        ).timestamp()[1]
        for kind, fields in kinds.items()
    }


def _instants(came: dict[str, int]) -> list[str]:
    """What fires for requests that came then."""
    cron_ms = (came["CRON"] // CRON_MS + 1) * CRON_MS
    found = [came["EVERY"] + RHYTHM_MS * number for number in range(1, FIRES + 1)]
    found += [cron_ms + CRON_MS * number for number in range(FIRES)]
    return sorted(rfc3339(ms).decode() for ms in (*found, came["AFTER"] + RHYTHM_MS))


def _all_accepted(scene: Scene, tenants: list[str]) -> bool:
    outcomes = scene.site.outcomes()
    found = [
        outcomes.get(f"{t}/{kind}", []) for t in tenants for kind in ("EVERY", "CRON", "AFTER")
    ]
    for events in found:
        assert [each["outcome"] for each in events] in ([], ["ACCEPTED"]), events
    return all(found)


def _repeat(scene: Scene, tenants: list[str]) -> None:
    """An id is remembered for an hour of the broker's, whatever the clock was when it came."""
    for tenant in tenants:
        fields = {"kind": "AFTER", "request_id": f"{tenant}/AFTER", "payload": b""}
        scene.site.ask(tenant, "AFTER", **fields, delay_ms=RHYTHM_MS)
    wait_for("second answers", lambda: all(len(each) > 1 for each in _answers(scene, tenants)))
    for events in _answers(scene, tenants):
        assert [each["outcome"] for each in events] == ["ACCEPTED", "DUPLICATE"], events


def _answers(scene: Scene, tenants: list[str]) -> list[list[dict[str, Any]]]:
    outcomes = scene.site.outcomes()
    return [outcomes[f"{tenant}/AFTER"] for tenant in tenants]


def _accepted(worker: Worker) -> float:
    """Requests that a worker has accepted since its start."""
    _, page = worker.get("/metrics")
    found = re.findall(
        r'^belfry_requests_total\{[^}]*outcome="ACCEPTED"[^}]*\} (\S+)$', page, re.MULTILINE
    )
    return sum(map(float, found))


def _step(scene: Scene, by_ms: int) -> str:
    scene.gather()
    scene.clock.put(by_ms)
    try:
        wait_for("firing to pause", lambda: value(scene.victim, "belfry_firing_paused") == 1.0)
    finally:
        scene.clock.put(0)
    scene.wait_calm()
    return f"clock set by {by_ms} ms; firing paused, and went on"


def value(worker: Worker, name: str) -> float:
    """A metric without labels; 0 where it is not there."""
    _, page = worker.get("/metrics")
    found = re.search(rf"^{name} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0
