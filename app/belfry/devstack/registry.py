"""The schema registry: Apicurio, used through Confluent's API.

Schemas and their ids lie in an H2 database file under the data directory.  Every registration is on
disk before it is answered (``WRITE_DELAY=0``), so ids stay the same even after a SIGKILL.
"""

from __future__ import annotations

from pathlib import Path

from belfry.devstack.artifacts import registry_home
from belfry.devstack.class_cache import class_cache_options
from belfry.devstack.java import java
from belfry.devstack.ports import LOOPBACK
from belfry.devstack.probing import http_status
from belfry.devstack.service import JavaService


class Apicurio(JavaService):
    """A schema registry whose schemas and ids outlive it in ``data_dir``."""

    name = "registry"

    def __init__(self, data_dir: Path, port: int = 0, heap_mb: int = 192) -> None:
        """A registry of its own data directory; ``port`` 0 takes any free one."""
        super().__init__(data_dir, port, heap_mb)

    @property
    def url(self) -> str:
        """Address for clients of Confluent's API."""
        return f"http://{LOOPBACK}:{self.port}/apis/ccompat/v7"

    def _command(self) -> list[str]:
        settings = [f"-D{name}={value}" for name, value in self._settings().items()]
        # Little memory and an early answer count here, not throughput.
        modest = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k")
        home = registry_home()
        options = (*modest, *class_cache_options(home), *settings)
        return [*java(self.heap_mb, self.temp_dir, *options), "-jar", str(home / "quarkus-run.jar")]

    def _answers(self) -> bool:
        return http_status(f"{self.url}/subjects") == 200

    def _settings(self) -> dict[str, str]:
        """Apicurio's and Quarkus' settings: one port, a small pool of connections, a database in a
        file.
        """
        # System properties win over QUARKUS_* and APICURIO_* variables of the environment.
        database = self.data_dir / "schemas"
        return {
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": str(self.port),
            "quarkus.http.access-log.enabled": "false",
            "quarkus.management.host": LOOPBACK,
            "quarkus.management.port": "0",
            "quarkus.log.level": "WARN",
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:file:{database};WRITE_DELAY=0",
            "apicurio.datasource.jdbc.initial-size": "1",
            "apicurio.datasource.jdbc.min-size": "1",
            "apicurio.datasource.jdbc.max-size": "8",
        }
