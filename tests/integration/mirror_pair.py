"""Two sites of the same belfry in two clusters, and the commands of docs/mirror.md in each."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from belfry.cli.entry import main
from belfry.devstack.child import Child
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site

SECRET: Final = "a secret that all workers share"
SETTINGS: Final = {
    "CLUSTER__PARTITIONS": "2",
    "LIFECYCLE": "ALL",
    "CHANGELOG": "required",
    "HTTP_WORKER_SECRET": SECRET,
}


class Pair:
    """Two sites of the same belfry in two clusters, and commands in each of them."""

    def __init__(self, brokers: tuple[str, str], name: str, home: Path, **more: str) -> None:
        """`more` are further settings of both."""
        self.home = home
        self.settings = {**SETTINGS, **more}
        self.a, self.b = (
            Site(broker, name, home / side, **self.settings)
            for broker, side in zip(brokers, "ab", strict=True)
        )

    def env(self, site: Site) -> dict[str, str]:
        """The variables of a side's processes."""
        given = {
            **self.settings,
            "BOOTSTRAP_SERVERS": site.bootstrap,
            "CLUSTER__TOPIC_PREFIX": site.prefix,
            "CLUSTER__APP_ID": site.name,
            "MIRROR_SOURCE": (self.b if site is self.a else self.a).bootstrap,
            "CONFIG_FILE": str(self.home / "none.toml"),
        }
        if site.workers:
            given["HTTP_URL"] = f"http://127.0.0.1:{site.workers[0].http_port}"
        return {f"BELFRY_{key}": value for key, value in given.items()}

    def command(self, site: Site, *arguments: str) -> int:
        """Run a command on a side; its exit code."""
        with pytest.MonkeyPatch.context() as patch:
            for key, value in self.env(site).items():
                patch.setenv(key, value)
            return main(list(arguments))

    def child(self, site: Site, log: str, *arguments: str) -> Child:
        """A command of a side as a process of its own, with its output in this file."""
        foreign = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        command = [sys.executable, "-m", "belfry.cli", *arguments]
        return Child(command, env={**foreign, **self.env(site)}, log=self.home / log)

    def mirror(self, target: Site, *options: str) -> Child:
        """A mirror that runs as a process of its own."""
        return self.child(target, "mirror.log", "mirror", "run", *options)

    def fired(self, tenant: str) -> list[Record]:
        """What came out for a tenant, on either side; none where its topic is not there."""
        found = []
        for site in (self.a, self.b):
            found += site.fired(tenant) if has_topic(site, site.topic(f"fired.{tenant}")) else []
        return found


def has_topic(site: Site, topic: str) -> bool:
    return topic in site.producer.list_topics(timeout=10).topics


def names(records: list[Record]) -> Counter[str]:
    """How often each schedule has fired."""
    return Counter((each.header("belfry-schedule-id") or b"").decode() for each in records)


def ids(records: list[Record]) -> Counter[bytes]:
    return Counter(each.header("belfry-fire-id") or b"" for each in records)
