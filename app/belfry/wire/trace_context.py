"""The W3C trace context that a record or an HTTP request carries.

    traceparent   00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
                  version, trace id, id of the caller's span, flags (the last bit: sampled)
    tracestate    vendors' own words, passed on as they are

A context that is not well-formed is ignored, as the recommendation asks. Versions after 00 may have
more fields behind the flags, which are not read.

The recommendation is W3C's *Trace Context*, level 1. The shell makes the spans themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from belfry.wire.record import Headers

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
MOST_STATE: Final = 512
_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16
_SAMPLED: Final = 1


class TraceContext(NamedTuple):
    """A reference to a span: ids in lower-case hexadecimal digits."""

    trace_id: str
    span_id: str
    sampled: bool = True
    state: str = ""

    def headers(self) -> Headers:
        """The headers by which a record refers to this span."""
        parent = f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"
        given: Headers = [(TRACEPARENT, parent.encode())]
        if self.state:
            given.append((TRACESTATE, self.state.encode("latin-1")))
        return given


def context_of(traceparent: str, tracestate: str = "") -> TraceContext | None:
    """The context in two headers, None if the first is not well-formed."""
    found = _FORM.fullmatch(traceparent)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE:
        return None
    if span_id == _NO_SPAN:
        return None
    state = tracestate if len(tracestate) <= MOST_STATE and tracestate.isprintable() else ""
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED), state)


def sampled_in(headers: Iterable[tuple[str, bytes | None]]) -> TraceContext | None:
    """The context in a record's headers, None if it is not to be traced.

    Of several with one name the first counts.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        if name in (TRACEPARENT, TRACESTATE):
            found.setdefault(name, (value or b"").decode("latin-1"))
    if TRACEPARENT not in found:
        return None
    context = context_of(found[TRACEPARENT], found.get(TRACESTATE, ""))
    return context if context is not None and context.sampled else None
