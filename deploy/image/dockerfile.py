"""What `compose/Dockerfile` says of a container, for an image that is built without Docker.

Both images are started alike because there is one place that says how: the last stage of that file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

CONTINUED: Final = re.compile(r"\\\n\s*")
ARGUMENT: Final = re.compile(r"\$\{(\w+)\}")
OPTION: Final = re.compile(r"--([a-z-]+)=(\d+)(s?)")
NANOSECONDS: Final = 1_000_000_000
# That of the base images that Docker's Python stands on.
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HEALTH: Final = {
    "interval": "Interval",
    "timeout": "Timeout",
    "start-period": "StartPeriod",
    "retries": "Retries",
}


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of the last stage, in their order."""
    lines = [each for each in CONTINUED.sub("", text).splitlines() if each and each[0] != "#"]
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines[last:])]


def runtime(text: str, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What a container is started with, as the configuration of an image has it.

    ``arguments`` take the place of those that the file declares with ARG.
    """
    found: dict[str, Any] = {"Env": [], "ExposedPorts": {}, "Volumes": {}, "Labels": {}}
    given = {**dict(_arguments(text)), **arguments}
    for name, written in instructions(text):
        rest = ARGUMENT.sub(lambda match: given.get(match[1], match[0]), written)
        match name:
            case "USER" | "WORKDIR":
                found["User" if name == "USER" else "WorkingDir"] = rest
            case "ENTRYPOINT" | "CMD":
                found[name.capitalize()] = json.loads(rest)
            case "ENV":
                found["Env"] += shlex.split(rest.replace("$PATH", PATH))
            case "LABEL":
                found["Labels"] |= dict(word.split("=", 1) for word in shlex.split(rest))
            case "EXPOSE":
                found["ExposedPorts"] |= {f"{port}/tcp": {} for port in rest.split()}
            case "VOLUME":
                found["Volumes"] |= {path: {} for path in json.loads(rest)}
            case "HEALTHCHECK":
                found["Healthcheck"] = _health(rest)
    return found


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    for name, rest in instructions(text):
        if name == "ARG" and "=" in rest:
            argument, _, value = rest.partition("=")
            yield argument, value


def _health(rest: str) -> dict[str, Any]:
    """Docker reads this; OCI has no field for it, and orchestrators have probes of their own."""
    options, _, command = rest.partition("CMD ")
    said = {
        HEALTH[name]: int(number) * (NANOSECONDS if seconds else 1)
        for name, number, seconds in OPTION.findall(options)
    }
    return {"Test": ["CMD", *json.loads(command)], **said}
