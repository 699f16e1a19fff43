"""docs/payloads.md: a sweep takes stored payloads that nothing claims, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from belfry.cli import payloads
from belfry.cli.entry import main
from belfry.cli.payload_claims import ClaimReader
from belfry.client import ClaimCheck, FiredRecord
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.outputs.stored_payloads import PayloadFolder
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claim_check import digest_of, object_name
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.s3.server import BUCKET, S3Server

pytestmark = pytest.mark.slow

OVER: Final = 10_000
DAY_MS: Final = 86_400_000
Sweep = Callable[..., dict[str, Any]]


class Swept(Site):
    """A belfry whose large payloads go to a folder of a bucket."""

    def __init__(self, kafka: str, name: str, home: Path, s3: S3Server) -> None:
        self.s3 = s3
        self.folder = name
        self.store = {
            "PAYLOAD_STORE": f"s3://{BUCKET}/{name}",
            "PAYLOAD_STORE_OPTIONS": orjson.dumps(s3.options()).decode(),
        }
        super().__init__(kafka, name, home, **self.store)
        self._numbers = count()

    def path(self, payload: bytes, aside: str = "") -> str:
        """Where a payload of the tenant lies in the bucket."""
        return f"{self.folder}/{aside}shop/{object_name(digest_of(payload))}"

    def there(self) -> set[str]:
        """What lies in the folder."""
        return set(self.s3.objects(self.folder))

    def asked(self, schedule_id: str, payload: bytes, **fields: Any) -> str:
        """Ask for a schedule until its payload was stored in time; what was told of it."""

        def told() -> str:
            request_id = f"{schedule_id}-{next(self._numbers)}"
            self.ask("shop", schedule_id, payload=payload, request_id=request_id, **fields)
            outcome = self.outcome(request_id)
            return "" if outcome["code"] == "payload_not_stored" else str(outcome["outcome"])

        return wait_for("a payload that is stored", told)

    def claims(self) -> ClaimCheck:
        """What a client of the tenant stores and redeems with."""
        return ClaimCheck(f"s3://{BUCKET}/{self.folder}/shop", OVER, **self.s3.options())

    def make_old(self) -> None:
        """Let all that is stored have been stored a month ago."""
        for path in self.there():
            self.s3.make_old(path)


@pytest.fixture
def site(kafka: str, tmp_path: Path, s3: S3Server, unique: Callable[[str], str]) -> Iterator[Swept]:
    with Swept(kafka, unique("swept"), tmp_path, s3) as site:
        site.schedules_topic()
        site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
        policy = TenantPolicy("shop", claim_check_over_bytes=OVER)
        TenantPolicies(Cluster(site.bootstrap), site.prefix).put(policy)
        yield site


@pytest.fixture
def sweep(
    site: Swept, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Sweep:
    """`belfry payloads sweep`, as a program sees it."""
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
    for name, value in site.store.items():
        monkeypatch.setenv(f"BELFRY_{name}", value)
    monkeypatch.setattr(payloads, "STORED_S", 2.0)
    monkeypatch.setenv("BELFRY_TRANSACTION_TIMEOUT_MS", "1000")

    def run(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main(["payloads", "sweep", "--output", "json", *arguments])
        shown = capsys.readouterr()
        assert code == 0, shown.err
        found: dict[str, Any] = orjson.loads(shown.out)
        return found

    return run


def large(number: int) -> bytes:
    """A payload of 200 kB."""
    return b"%06d" % number * 33_334


WAITS, RECURS, FIRED, CANCELLED, ON_ITS_WAY, ORPHAN, KEPT = map(large, range(7))


def test_a_sweep_takes_what_nothing_claims_and_nothing_else(
    site: Swept, sweep: Sweep, tmp_path: Path
) -> None:
    worker = site.worker().start().wait_ready()
    assert site.asked("waits", WAITS, at=now_ms() + DAY_MS) == "ACCEPTED"
    assert site.asked("recurs", RECURS, kind="EVERY", interval_ms=DAY_MS) == "ACCEPTED"
    assert site.asked("fired", FIRED, at=now_ms()) == "ACCEPTED"
    assert site.asked("cancelled", CANCELLED, at=now_ms() + DAY_MS) == "ACCEPTED"
    site.ask("shop", "cancelled", action="CANCEL", request_id="over")
    assert site.outcome("over")["outcome"] == "CANCELLED"
    site.wait_fired("shop", 1)
    assert worker.stop() == 0
    # No worker runs when a client asks for something with a claim of its own.
    claims = site.claims()
    deposit = claims.deposit(ON_ITS_WAY)
    headers = [{"name": k, "value": str(v).encode()} for k, v in deposit["headers"]]
    site.ask("shop", "on-its-way", at=now_ms(), payload=b"", headers=headers)
    claims.deposit(ORPHAN)
    claims.deposit(KEPT)
    backup = tmp_path / "backup.jsonl"
    backup.write_text(
        f'{{"headers":[{{"name":"claim-check-sha256","value_text":"{digest_of(KEPT)}"}}]}}'
    )
    stored = site.there()
    assert len(stored) == 7
    # All of it is young.
    assert sweep("--apply")["young"] == 7
    assert site.there() == stored

    site.make_old()
    told = sweep("--backup", str(backup))
    assert (told["claimed"]["objects"], told["unclaimed"]["objects"]) == (5, 2)
    assert site.there() == stored, "nothing is changed without --apply"
    told = sweep("--backup", str(backup), "--apply")
    gone = {site.path(CANCELLED), site.path(ORPHAN)}
    aside = {site.path(each, ".swept/") for each in (CANCELLED, ORPHAN)}
    assert (told["put_aside"], told["put_back"], told["removed"]) == (2, 0, 0)
    assert site.there() == stored - gone | aside
    # What is aside is removed by a later sweep, and not by the next one.
    assert sweep("--backup", str(backup), "--apply")["removed"] == 0
    for path in aside:
        site.s3.make_old(path, days=2)
    assert sweep("--backup", str(backup), "--apply")["removed"] == 2
    assert site.there() == stored - gone

    worker.start().wait_ready()
    events = site.wait_fired("shop", 2)
    assert {claims.redeem(FiredRecord(*_fields(each))) for each in events} == {FIRED, ON_ITS_WAY}
    assert worker.stop() == 0


def _fields(record: Any) -> tuple[Any, ...]:
    names = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
    return tuple(getattr(record, name) for name in names)


def test_a_payload_that_is_used_again_at_that_very_moment_comes_back(
    site: Swept, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker stores it anew, and commits, between the sweep's last look and its removal."""
    worker = site.worker().start().wait_ready()
    site.claims().deposit(ORPHAN)
    site.make_old()
    removed, again = PayloadFolder.remove, list[str]()

    def remove(folder: PayloadFolder, tenant: str, digest: str) -> None:
        if site.path(ORPHAN) in site.there() and not again:
            again.append(site.asked("again", ORPHAN, at=now_ms() + DAY_MS))
        removed(folder, tenant, digest)

    monkeypatch.setattr(PayloadFolder, "remove", remove)
    told = sweep("--apply")
    assert again == ["ACCEPTED"]
    assert (told["put_aside"], told["put_back"]) == (1, 1)
    assert site.there() == {site.path(ORPHAN)}
    assert worker.stop() == 0


def test_a_payload_that_is_stored_anew_before_the_last_look_stays(
    site: Swept, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = site.claims()
    claims.deposit(ORPHAN)
    site.make_old()
    taken = PayloadFolder.take

    def take(folder: PayloadFolder, other: PayloadFolder, tenant: str, digest: str) -> None:
        taken(folder, other, tenant, digest)
        claims.deposit(ORPHAN)

    monkeypatch.setattr(PayloadFolder, "take", take)
    # There has to be a belfry that nothing waits in.
    worker = site.worker().start().wait_ready()
    assert worker.stop() == 0
    told = sweep("--apply")
    assert (told["put_aside"], told["left"]) == (0, 1)
    assert site.there() == {site.path(ORPHAN)}


def test_an_event_that_fires_between_two_looks_is_seen(
    site: Swept, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in another order, its row would be gone, and its event would not be there yet."""
    worker = site.worker().start().wait_ready()
    due_ms = now_ms() + 8_000
    assert site.asked("soon", FIRED, at=due_ms) == "ACCEPTED"
    worker.kill()
    assert now_ms() < due_ms
    site.make_old()
    looks = list[str]()
    for name in ("waiting", "elsewhere"):
        look = getattr(ClaimReader, name)

        def looked(reader: ClaimReader, look: Any = look, name: str = name) -> Any:
            found = look(reader)
            looks.append(name)
            if len(looks) == 1:
                worker.start().wait_ready()
                site.wait_fired("shop", 1)
            return found

        monkeypatch.setattr(ClaimReader, name, looked)
    told = sweep("--apply")
    assert len(looks) == 2
    assert (told["claimed"]["objects"], told["put_aside"]) == (1, 0)
    assert site.there() == {site.path(FIRED)}
    assert worker.stop() == 0
