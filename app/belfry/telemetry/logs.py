"""Log lines: structlog for belfry's own, and one handler for the libraries that use `logging`.

Both run through the same processors, so that a line of Faust, mode, aiokafka or uvicorn looks like
one of belfry's and lands in the same stream.  JSON for machines, colours for people:

    log.warning("no answer", partition=3, value=b"…", api_key="k-5f2a…")
        {"event": "no answer", "level": "warning", "timestamp": "2026-12-01T09:00:00Z",
         "partition": 3, "value": "<14 bytes>", "api_key": "***"}

The event is a fixed sentence and everything that varies is a field of its own, so that a search for
the sentence finds all lines of a kind.

Invariant: no payload and no secret reaches a line.  Bytes are written as their length, and values
whose name says that they are secret are blotted out.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from belfry.settings import ServerSettings
from belfry.settings.sources import file_that_is_missing

SECRET_NAME: Final = re.compile(r"password|passwd|secret|token|credential|api_?key", re.IGNORECASE)
BLOT: Final = "***"
# Their debug lines describe every fetch; an operator who sets belfry to debug looks for belfry's
# own.
CHATTY_LIBRARIES: Final = (
    "aiokafka",
    "faust",
    "mode",
    "asyncio",
    "uvicorn",
    "librdkafka",
    "httpx2",
    "httpcore",
    "opentelemetry",
    "urllib3",
)


def begin(settings: ServerSettings) -> None:
    """`configure`, and a first line where the file of settings is not there."""
    configure(settings)
    if missing := file_that_is_missing():
        log = structlog.get_logger("belfry")
        log.warning("the settings file is not there", reason=missing)


def configure(settings: ServerSettings, stream: TextIO | None = None) -> None:
    """Send the log lines of this process to `stream` (default: standard error).

    In a process that traces, a line about a fire names its trace; one that is written while a
    request over HTTP is answered names that of the request.
    """
    target = stream or sys.stderr
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared_processors(),
            *([trace_of_fire] if settings.otlp_url else []),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    _bridge(target, renderers(settings.log_format, target), settings.log_level)


def shared_processors() -> list[Processor]:
    """The processing of every line, from any logger, before it is rendered."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        keep_secrets,
    ]


def renderers(log_format: str, stream: TextIO) -> list[Processor]:
    """Last processors of a line; ``auto`` takes the console where a person looks on."""
    if log_format == "console" or (log_format == "auto" and stream.isatty()):
        plain = structlog.dev.plain_traceback  # a rich one shows local variables, payloads included
        return [structlog.dev.ConsoleRenderer(colors=_coloured(stream), exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_json)]


def _coloured(stream: TextIO) -> bool:
    """Whether lines have colours: at a terminal that knows them, unless NO_COLOR says no."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()


def trace_of_fire(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Name the trace of a fire that a line is about, as `telemetry/spans.py` gives it its id."""
    if "fire_id" in line:
        line.setdefault("trace_id", line["fire_id"])
    return line


def keep_secrets(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Replace values that must not be written: bytes by their length, secrets by a blot."""
    return {name: _safe(name, value) for name, value in line.items()}


def _safe(name: str, value: Any) -> Any:
    # Underscored entries are structlog's own and never rendered.
    if name.startswith("_"):
        return value
    if SECRET_NAME.search(name):
        return BLOT
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, Mapping):
        return {inner: _safe(str(inner), item) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(name, item) for item in value]
    return value


def _json(line: EventDict, **_options: Any) -> str:
    """A line as JSON; a value that JSON does not have is shown as Python shows it."""
    return orjson.dumps(line, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


def _bridge(stream: TextIO, rendering: list[Processor], level: str) -> None:
    """Give the root logger our handler alone; chatty libraries tell warnings at least."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared_processors(), structlog.stdlib.ExtraAdder(), keep_secrets],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    quiet = max(logging.getLevelName(level.upper()), logging.WARNING)
    for name in CHATTY_LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(quiet)
    logging.captureWarnings(capture=True)
