"""Takes the client's modules from `app/belfry`, where they are developed, into its wheel.

    app/belfry/{rooms, files} less those left out ─► belfry/
    schemas/                                      ─► belfry/avro/

Names of rooms and files are in `pyproject.toml`; `tests/architecture/test_client_wheel.py` holds
them to what the client imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def modules(package: Path, config: dict[str, Any]) -> Iterator[str]:
    """Paths of the files that belong to the wheel, below the package."""
    yield from config["files"]
    for room in config["rooms"]:
        for path in sorted((package / room).rglob("*.py")):
            name = path.relative_to(package).as_posix()
            if name not in config["left-out"]:
                yield name


class ClientFiles(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that hatchling calls before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name each file, and where it belongs; an editable install has nothing to copy."""
        if self.target_name != "wheel" or version == "editable":
            raise SystemExit("belfry-client is built as a wheel alone: python -m build --wheel")
        root = Path(self.root).parents[1]
        package = root / "app" / "belfry"
        for name in modules(package, self.config):
            build_data["force_include"][str(package / name)] = f"belfry/{name}"
        build_data["force_include"][str(root / "schemas")] = "belfry/avro"
