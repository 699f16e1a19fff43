"""A worker of Kafka Connect, for the demonstration of sinks and for the tests.

It runs `ConnectDistributed` with a worker's properties as they stand in a file.  Whatever differs
from machine to machine the file asks of the environment (``${env:CONNECT_…}``), so the same file
serves here, in a container and in production.

    <data dir>/plugins/file/*.jar -> <cache>/connect-file-…     plugin.path=plugins
    <data dir>/plugins/avro/*.jar -> <cache>/connect-avro-…
    <data dir>/plugins/jdbc/*.jar -> <cache>/connect-jdbc-…
    <data dir>/plugins/postgres/*.jar -> <cache>/connect-postgres-…

Connectors, their settings and how far they have read lie in Kafka: a killed worker goes on where
its last flush was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from zipfile import ZipFile

from belfry.devstack.artifacts import connect_jars, connect_plugin
from belfry.devstack.errors import DevStackError
from belfry.devstack.java import java
from belfry.devstack.ports import LOOPBACK
from belfry.devstack.probing import http_status
from belfry.devstack.service import JavaService

PLUGINS: Final = ("file", "avro", "jdbc", "postgres")
REQUEST_S: Final = 60.0
# Plug-ins that do not say what is in them; Kafka's `connect-plugin-path` would write the same.
MANIFESTS: Final[Mapping[str, Mapping[str, str]]] = {
    "avro": {
        "org.apache.kafka.connect.storage.Converter": (
            "io.apicurio.registry.utils.converter.AvroConverter"
        )
    }
}


class Connect(JavaService):
    """A Connect worker; `properties` is its file, `environment` what that file asks for."""

    name = "connect"

    def __init__(
        self,
        data_dir: Path,
        properties: Path,
        environment: Mapping[str, str],
        *,
        port: int = 0,
        plugins: Sequence[str] = PLUGINS,
    ) -> None:
        """``CONNECT_REST_PORT`` is given by us; `plugins` are those of `connect_plugin`."""
        super().__init__(data_dir, port, heap_mb=384)
        self._properties = properties.absolute()
        self._given = dict(environment)
        self._plugins = tuple(plugins)

    @property
    def url(self) -> str:
        """Address of its REST interface."""
        return f"http://{LOOPBACK}:{self.port}"

    def connectors(self) -> list[str]:
        """Names of the connectors that it knows."""
        found: list[str] = self._asked("GET", "/connectors")
        return found

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or give it another configuration."""
        self._asked("PUT", f"/connectors/{name}/config", config)

    def put_file(self, name: str, file: Path) -> None:
        """The same with a configuration as it stands in a JSON file."""
        self.put(name, json.loads(file.read_text("utf-8")))

    def delete(self, name: str) -> None:
        """End a connector; what it read stays read."""
        self._asked("DELETE", f"/connectors/{name}")

    def status(self, name: str) -> dict[str, Any]:
        """State of a connector and of its tasks, as Connect tells it."""
        found: dict[str, Any] = self._asked("GET", f"/connectors/{name}/status")
        return found

    def runs(self, name: str) -> bool:
        """Whether a connector and all its tasks run; raises when a task has failed."""
        try:
            found = self.status(name)
        except DevStackError:
            return False
        states = [found["connector"], *found["tasks"]]
        failed = [each["trace"] for each in states if each["state"] == "FAILED"]
        if failed:
            raise DevStackError(f"Connector {name} failed: {failed[0]}")
        return len(states) > 1 and all(each["state"] == "RUNNING" for each in states)

    def _command(self) -> list[str]:
        for plugin in self._plugins:
            self._install(plugin)
        modest = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO")
        return [
            *java(self.heap_mb, self.temp_dir, *modest),
            "-cp",
            str(connect_jars() / "*"),
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(self._properties),
        ]

    def _install(self, plugin: str) -> None:
        """Put a plug-in where the worker looks for it, with a manifest where it has none."""
        folder = self.data_dir / "plugins" / plugin
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for jar in connect_plugin(plugin).rglob("*.jar"):
            (folder / jar.name).symlink_to(jar)
        services = MANIFESTS.get(plugin, {})
        if services:
            with ZipFile(folder / "manifest.jar", "w") as jar_file:
                for service, provider in services.items():
                    jar_file.writestr(f"META-INF/services/{service}", f"{provider}\n")

    def _environment(self) -> Mapping[str, str]:
        return {
            **super()._environment(),
            **self._given,
            "CONNECT_REST_HOST": LOOPBACK,
            "CONNECT_REST_PORT": str(self.port),
        }

    def _folder(self) -> Path:
        return self.data_dir

    def _answers(self) -> bool:
        # The root answers before the worker has joined its group; the list of connectors does not.
        return http_status(f"{self.url}/connectors") == 200

    def _asked(self, method: str, path: str, body: Any = None) -> Any:
        request = Request(  # noqa: S310  (our own loopback address)
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"content-type": "application/json"},
            method=method,
        )
        try:
            with urlopen(request, timeout=REQUEST_S) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            text = error.read().decode(errors="replace")
            raise DevStackError(f"Connect refuses {method} {path}: {text}") from None
        except OSError as error:
            raise DevStackError(f"Connect does not answer {method} {path}: {error}") from None
