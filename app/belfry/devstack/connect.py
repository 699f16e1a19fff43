"""A worker of Kafka Connect, for the demonstration of sinks and for the tests.

It runs `ConnectDistributed` with a file of a worker's properties.  The file takes values that
differ from machine to machine from the environment (``${env:CONNECT_…}``).  So the same file serves
here, in a container and in production.

    <data dir>/plugins/file/*.jar -> <cache>/connect-file-…     plugin.path=plugins
    <data dir>/plugins/avro/*.jar -> <cache>/connect-avro-…
    <data dir>/plugins/jdbc/*.jar -> <cache>/connect-jdbc-…
    <data dir>/plugins/postgres/*.jar -> <cache>/connect-postgres-…

Connectors, their settings and their positions lie in Kafka: a killed worker goes on from its last
flush.
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
# Plug-ins without a manifest of their classes; Kafka's `connect-plugin-path` would write the same.
MANIFESTS: Final[Mapping[str, Mapping[str, str]]] = {
    "avro": {
        "org.apache.kafka.connect.storage.Converter": (
            "io.apicurio.registry.utils.converter.AvroConverter"
        )
    }
}


class Connect(JavaService):
    """A Connect worker; `properties` is its file, `environment` has the variables of that file.

    Its methods ask Connect's REST interface, wait up to `REQUEST_S` seconds, and raise
    `DevStackError` with Connect's own words where it refuses.
    """

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
        """This class sets ``CONNECT_REST_PORT``; `plugins` are names for `connect_plugin`."""
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
        """Create or change a connector by a configuration in a JSON file."""
        self.put(name, json.loads(file.read_text("utf-8")))

    def delete(self, name: str) -> None:
        """End a connector; its positions stay."""
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
        # Little memory and an early answer count here, not throughput.
        modest = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO")
        return [
            *java(self.heap_mb, self.temp_dir, *modest),
            "-cp",
            str(connect_jars() / "*"),
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(self._properties),
        ]

    def _install(self, plugin: str) -> None:
        """Put a plug-in where the worker searches it, with a manifest if it has none."""
        folder = self.data_dir / "plugins" / plugin
        # Links of an earlier run may lead to another version.
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
        """The JSON that answers one request; None where the answer is empty."""
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
