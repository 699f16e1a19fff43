"""Names of properties that belfry passes on: those of librdkafka, and of the registry's client.

librdkafka tells its own names, so that each release of it has its list: asked for its table of
properties, it writes them into a C stream, which is a buffer in memory here. Where that is not to
be had (another C library), a client is made with each property by itself, and its error says
whether there is such a name.

    open_memstream ─► rd_kafka_conf_properties_show(stream) ─► text of a table ─► names
    elsewhere: AdminClient({name: ""}) ─► "No such configuration property" or something else

The registry's client has no such table; its names stand here, and a test compares them with what
that client reads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

# confluent-kafka's own, beside librdkafka's.
_OF_CONFLUENT: Final = frozenset({"default.topic.config"})
# A prefix that librdkafka takes before properties of topics.
_OF_A_TOPIC: Final = "topic."
# Common properties, to suggest one if librdkafka tells no names.
_COMMON: Final = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "debug",
        "log_level",
        "security.protocol",
        "sasl.mechanism",
        "sasl.username",
        "sasl.password",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
    }
)
# The words of librdkafka about a name that it does not know.
_UNKNOWN: Final = "No such configuration property"

_BACKOFF: Final = "reconnect.backoff.ms"
_LONGEST_BACKOFF: Final = "reconnect.backoff.max.ms"
_RETURNS_MS: Final = 500

# All names that confluent-kafka's client of a registry reads.
REGISTRY_PROPERTIES: Final = frozenset(
    {
        "basic.auth.user.info",
        "bearer.auth.client.id",
        "bearer.auth.client.secret",
        "bearer.auth.credentials.source",
        "bearer.auth.custom.provider.config",
        "bearer.auth.custom.provider.function",
        "bearer.auth.identity.pool.id",
        "bearer.auth.issuer.endpoint.query",
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.logical.cluster",
        "bearer.auth.scope",
        "bearer.auth.token",
        "cache.capacity",
        "cache.latest.ttl.sec",
        "max.retries",
        "proxy",
        "retries.max.wait.ms",
        "retries.wait.ms",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "timeout",
    }
)


def property_name(key: str) -> str:
    """librdkafka's name of a property: ``SECURITY_PROTOCOL`` gives ``security.protocol``.

    Environment variables cannot hold dots, and only one property of librdkafka has an underscore.
    """
    name = key.lower()
    return name if name == "log_level" else name.replace("_", ".")


def returns(given: Mapping[str, Any]) -> dict[str, Any]:
    """How many milliseconds a client waits at most for a broker that was away, as a property.

    By default these waits grow to 10 s, so a broker that is back from a restart is not used for as
    long.  librdkafka refuses a longest wait below the first one, which an operator may have given.
    """
    try:
        return {_LONGEST_BACKOFF: max(_RETURNS_MS, int(given.get(_BACKOFF, 0)))}
    except (TypeError, ValueError):
        return {}  # The client refuses it, in words.


def is_kafka_property(name: str) -> bool:
    """Whether librdkafka, or confluent-kafka above it, has a property of this name."""
    told = _told()
    if not told:
        return _is_taken(name)
    return name.removeprefix(_OF_A_TOPIC) in told or name in _OF_CONFLUENT


def kafka_properties() -> frozenset[str]:
    """Names of librdkafka's properties; the common ones where it does not tell."""
    return _told() or _COMMON


@cache
def _told() -> frozenset[str]:
    """The text of librdkafka about itself; empty if it cannot be asked. Asked once in a process."""
    try:
        lines = _table().splitlines()
    except (OSError, AttributeError, TypeError, ValueError):
        return frozenset()
    names = {line.partition("|")[0].strip() for line in lines if "|" in line}
    # Headings of the table and its rules are no names.
    return frozenset(name for name in names if name[:1].isalpha() and name.islower())


def _table() -> str:
    """librdkafka's table of its properties, a line for each: the name, a bar, and more."""
    from confluent_kafka import cimpl

    # A look-up in the extension module finds what the library behind it exports.
    kafka: Any = ctypes.CDLL(cimpl.__file__)
    libc: Any = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    libc.open_memstream.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    libc.fclose.argtypes = libc.free.argtypes = (ctypes.c_void_p,)
    kafka.rd_kafka_conf_properties_show.argtypes = (ctypes.c_void_p,)
    kafka.rd_kafka_conf_properties_show.restype = None
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = libc.open_memstream(ctypes.byref(text), ctypes.byref(size))
    if not stream:
        raise OSError("no stream in memory")
    kafka.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    assert text.value is not None, "a closed stream has its buffer"
    try:
        return ctypes.string_at(text.value, size.value).decode()
    finally:
        libc.free(text)


def _is_taken(name: str) -> bool:
    """Whether a client takes a property of this name; it may still refuse the value."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient({"log_level": 0, name: ""})
    except KafkaException as error:
        return _UNKNOWN not in error.args[0].str()
    except (TypeError, ValueError):
        return True
    return True
