"""The key that a request arrives with and the partition it arrives on never matter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.reading import read_all
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

PARTITIONS = range(4)


def test_a_stray_is_rerouted_and_fires_once(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("stray"), tmp_path) as site:
        site.worker().start().wait_ready()
        for partition in PARTITIONS:
            avro = request(
                "t", f"a{partition}", at=now_ms() + 800, payload=b"a%d" % partition,
                request_id=f"a{partition}",
            )  # fmt: skip
            site.send(avro, key=b"any", partition=partition)
            plain = [
                ("belfry-tenant", b"t"),
                ("belfry-id", b"h%d" % partition),
                ("belfry-in", b"800ms"),
                ("belfry-request-id", b"h%d" % partition),
                ("mine", b"\xff"),
            ]
            site.send(b"h%d" % partition, key=None, partition=partition, headers=plain)
            gone = request("t", f"gone{partition}", at=now_ms() + 60_000, payload=b"never")
            site.send(gone, key=b"t", partition=partition)
            site.send(None, key=b"t/gone%d" % partition, partition=partition)
        fired = site.wait_fired("t", 8)
        wanted = {b"%c%d" % (kind, partition) for kind in b"ah" for partition in PARTITIONS}
        assert {record.value for record in fired} == wanted
        assert len(fired) == 8
        for record in fired:
            names = [name for name, _ in record.headers]
            assert not [name for name in names if name.startswith("belfry-origin")]
            assert (record.header("mine") == b"\xff") is (record.value or b"").startswith(b"h")
        told = site.outcomes()
        for partition in PARTITIONS:
            for kind in "ah":
                (event,) = told[f"{kind}{partition}"]
                assert event["outcome"] == "ACCEPTED"
                # The verdict names the place at which the request was first received.
                assert event["source_partition"] == partition
        assert not site.rejected()
        requests = read_all(kafka, site.topic("schedules"))
        hops = [r for r in requests if r.header("belfry-origin-partition") is not None]
        assert len(hops) == 3 * 4
        assert len({record.partition for record in hops}) == 1


def test_a_stray_that_strays_again_finds_its_home_and_none_goes_round_for_ever(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("stray"), tmp_path) as site:
        site.worker().start().wait_ready()
        home = site.ask("t", "x", at=now_ms() + 60_000).partition()
        away = (home + 1) % len(PARTITIONS)
        forged = [(f"belfry-origin-{name}", b"1") for name in ("partition", "offset", "timestamp")]
        headers = [("belfry-origin-topic", b"elsewhere"), *forged]
        value = request("t", "y", at=now_ms(), payload=b"y", request_id="y")
        site.send(value, partition=away, headers=headers)
        assert site.outcome("y")["outcome"] == "ACCEPTED"
        value = request("t", "z", at=now_ms(), payload=b"z", request_id="z")
        lost = [*headers, ("belfry-origin-retries", b"1000")]
        site.send(value, partition=away, headers=lost)
        event = site.outcome("z")
        assert (event["outcome"], event["code"]) == ("REJECTED", "misrouted")
