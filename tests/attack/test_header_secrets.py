"""Secrets that headers of targets name: no tenant gets another's, and no tenant sends its own away.

What is right comes from docs/webhooks.md: a tenant names what `secret_refs` of its policy lists,
towards `allowed_hosts` of its policy, and both are the platform's to set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from belfry.delivery.answers import Answer, End
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.http_requests import Post, Secrets
from belfry.delivery.http_sender import HttpSender
from belfry.delivery.references import References
from belfry.delivery.work import Work, WorkId
from belfry.host.clock import SystemClock
from belfry.policies.secrets import SecretPlaces
from belfry.schedules.targets import HttpTarget, record_of
from belfry.tenants.deliveries import DeliveryState
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy, problems
from belfry.tenants.policy_rights import PLATFORMS
from belfry.wire.fired import FiredEvent
from tests.attack.family import Attack, judge
from tests.unit.engine.driver import HOUR, T0, Driver

OWN, OTHERS = "env:BELFRY_SECRET_EVIL_OWN", "env:BELFRY_SECRET_VICTIM"
HOST: Final = "hooks.evil.example"
SECRETS: Final = {
    "BELFRY_SECRET_EVIL_OWN": "own-0123456789abcdef",
    "BELFRY_SECRET_VICTIM": "victim-0123456789abcdef",
    "BELFRY_HTTP_WORKER_SECRET": "worker-0123456789abcdef",
}
POLICY: Final = TenantPolicy("evil", allowed_hosts=(HOST,), secret_refs=(OWN,))
# Ways to name what another tenant's policy lists, or what no policy may list.
REACHING: Final = (
    *(OTHERS, OTHERS.lower(), "env:BELFRY_HTTP_WORKER_SECRET", "env:PATH", "env:BELFRY_KAFKA"),
    *(
        "file:victim/key",
        "file:/etc/belfry/victim/key",
        "file:../../etc/passwd",
        "file:/etc/passwd",
    ),
    *("file:evil/../victim/key", "file:evil/key/../../victim/key", "file:/proc/self/environ"),
    *(OWN + "X", OWN[:-1], OWN + "_", "env:BELFRY_SECRET_", "file:."),
)
WAYS: Final[dict[str, Callable[[str], tuple[tuple[str, str], ...]]]] = {
    "alone": lambda ref: (("authorization", f"${{{ref}}}"),),
    "in a text": lambda ref: (("authorization", f"Bearer ${{{ref}}} x"),),
    "behind its own": lambda ref: (("authorization", f"${{{OWN}}}${{{ref}}}"),),
    "in another header": lambda ref: (("x-a", f"${{{OWN}}}"), ("x-b", f"${{{ref}}}")),
    "twice": lambda ref: (("x-a", f"${{{ref}}}${{{ref}}}"),),
    "nested": lambda ref: (("x-a", f"${{env:${{{ref}}}}}"),),
}


def reaching() -> Iterator[Attack[tuple[tuple[str, str], ...]]]:
    """Each secret that is not the tenant's, named in each way; and its own, which it may name."""
    for ref in REACHING:
        for way, headers in WAYS.items():
            yield Attack(f"{ref} {way}", headers(ref), "refused")
    for way, headers in WAYS.items():
        if way != "nested":
            yield Attack(f"its own {way}", headers(OWN), "taken")


def test_a_request_names_no_secret_of_others() -> None:
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(POLICY))

    def answer(headers: tuple[tuple[str, str], ...]) -> str:
        target = record_of({"url": f"https://{HOST}/", "headers": dict(headers)})
        driver.ask(tenant="evil", schedule_id="a", at=T0 + HOUR, http_targets=[target])
        codes = driver.step(T0, fire=False).codes
        assert set(codes) <= {"target_not_allowed", "bad_target"}
        return "refused" if codes else "taken"

    judge(reaching(), answer, 90)


def test_a_policy_of_an_administrator_names_no_secret_of_others() -> None:
    """The two lists are the platform's; within them targets are the tenant's."""
    assert {"secret_refs", "allowed_hosts"} <= set(PLATFORMS)

    def answer(headers: tuple[tuple[str, str], ...]) -> str:
        target = HttpTarget(f"https://{HOST}/", headers=headers)
        policy = TenantPolicy(
            "evil", http_targets=(target,), allowed_hosts=(HOST,), secret_refs=(OWN,)
        )
        return "refused" if problems(policy) else "taken"

    judge(reaching(), answer, 90)


class Net:
    """A transport that only notes what it was to send."""

    def __init__(self) -> None:
        self.posted: list[Post] = []

    async def post(self, post: Post) -> Answer:
        self.posted.append(post)
        return Answer(End.DELIVERED, post.url)

    async def close(self) -> None:
        """Nothing is open."""


def deliveries() -> Iterator[Attack[DeliveryState]]:
    """Deliveries as somebody would write them who got one into the topic."""
    for ref in REACHING:
        headers = WAYS["alone"](ref)
        target = HttpTarget(f"https://{HOST}/", headers=headers)
        yield Attack(
            f"{ref}, allowed another", DeliveryState((target,), hosts=(HOST,), refs=(OWN,)), ""
        )
    own = HttpTarget(f"https://{HOST}/", headers=WAYS["alone"](OWN))
    yield Attack("no list of hosts", DeliveryState((own,), refs=(OWN,)), "")
    away = HttpTarget("https://elsewhere.example/", headers=WAYS["alone"](OWN))
    yield Attack("another host", DeliveryState((away,), hosts=(HOST,), refs=(OWN,)), "")
    fine = DeliveryState((own,), hosts=(HOST,), refs=(OWN,))
    yield Attack("as the policy allows", fine, SECRETS["BELFRY_SECRET_EVIL_OWN"])


@pytest.mark.parametrize("trusted", [True, False])
def test_no_secret_leaves_with_a_delivery_that_nobody_allowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trusted: bool
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    net, results = Net(), SimpleQueue[Any]()
    references = References(SecretPlaces(tmp_path), trusted=trusted)
    means = SenderDependencies(lambda: net, Secrets({}), SystemClock(), 4, references)
    posting = HttpSender(means, lambda *result: results.put(result))
    posting.start()

    def answer(state: DeliveryState) -> str:
        event = FiredEvent("evil", "a", "f", 1, 0, 0, 0, 0, payload=b"")
        posting.hand_in([(WorkId(0, 0, 0), Work(b"k", b"", event, [], state))])
        results.get(timeout=10)
        sent = net.posted.pop() if net.posted else None
        return "" if sent is None else dict(sent.headers)["authorization"]

    def told(attack: Attack[DeliveryState]) -> Attack[DeliveryState]:
        # Where deliveries are not signed, not even what the policy allows is sent.
        return attack if trusted else attack._replace(right="")

    try:
        judge(map(told, deliveries()), answer, 18)
    finally:
        posting.stop()
