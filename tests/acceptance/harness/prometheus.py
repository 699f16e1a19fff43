"""A Prometheus that scrapes workers, with belfry's alerts: asked as Grafana asks it."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode

import yaml

from belfry.devstack import free_port
from belfry.devstack.child import Child
from tests.acceptance.harness.site import wait_for
from tests.architecture.tree import ROOT

ALERTS: Final = ROOT / "dashboards" / "alerts.yml"


def program() -> str | None:
    """Path of Prometheus, or None: the one on the path, else that of `make alerts`."""
    return shutil.which("prometheus", path=f"{ROOT / '.tools'}") or shutil.which("prometheus")


class Prometheus:
    """One process; leaving it kills it."""

    def __init__(self, home: Path, ports: Sequence[int]) -> None:
        """It scrapes the HTTP ports of workers each second."""
        home.mkdir(parents=True)
        self._home = home
        self._port = free_port()
        (home / "prometheus.yml").write_text(yaml.safe_dump(_config(ports)), "utf-8")

    def __enter__(self) -> Self:
        found = program()
        assert found is not None
        argv = [
            found,
            f"--config.file={self._home / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._home / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self._child = Child(argv, log=self._home / "prometheus.log")
        wait_for("Prometheus", self._is_ready)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._child.kill()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now; AssertionError with Prometheus' words if it has none."""
        answer = self._get(f"/api/v1/query?{urlencode({'query': expression})}")
        assert answer["status"] == "success", (expression, answer.get("error"))
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """All rules, with `health`, `state` and `lastError`."""
        groups = self._get("/api/v1/rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _is_ready(self) -> bool:
        assert self._child.exit_code() is None, (self._home / "prometheus.log").read_text("utf-8")
        try:
            return bool(self._get("/api/v1/targets")["data"]["activeTargets"])
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def _get(self, path: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def _config(ports: Sequence[int]) -> dict[str, Any]:
    targets = [f"127.0.0.1:{port}" for port in ports]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "belfry", "static_configs": [{"targets": targets}]}],
    }
