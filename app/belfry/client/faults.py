"""Errors of Kafka's client: which of them pass by themselves, and what they mean in words.

librdkafka reports a broker that cannot be reached to a callback and to its log, while the call that
waits for it only times out. `Faults` keeps the last such report, so that the error which is raised
in the end names the cause:

    12:00:00.0  list_topics(timeout=5) blocks
    12:00:00.1  error_cb: broker:9093: SSL handshake failed     kept by `Faults`
    12:00:05.0  KafkaException: Local: Timed out                what the call says
    12:00:05.0  Unavailable: … there is no secure connection to it: SSL handshake failed. Check …

Codes are sorted by the cure: a leader that moves is tried again, a topic that is absent is made, a
user that is denied is given a right.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError

from belfry.client.errors import BadProperty, MissingTopic

# The topic does not exist.
ABSENT: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})  # noqa: SLF001
# No answer came; what `Faults` has kept says why.
_TOO_SLOW: Final = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})
# The leader of a partition changes, or is not known yet: another try in a moment may do.
MOVING: Final = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
# Errors that do not pass by themselves: somebody has to do something.
_PERMANENT: Final = ABSENT | {
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001
}
# The brokers know this user, or its password, and say no.
_DENIED: Final = _PERMANENT - ABSENT
# A broker is there, and there is no secure connection to it.
LOCKED_OUT: Final = frozenset(
    {
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001
        KafkaError._SSL,  # noqa: SLF001
    }
)
CHECK_SECURITY: Final = (
    "Check security.protocol, whom this client trusts (ssl.ca.location), what it shows"
    " (ssl.certificate.location, ssl.keystore.location) and who it says it is (sasl.mechanism,"
    " sasl.username, sasl.password)"
)
# A producer has failed for good, some time ago; a new one says what for (`Cluster.cause`).
FAILED_FOR_GOOD: Final = KafkaError._FATAL  # noqa: SLF001
_ALL_DOWN: Final = KafkaError._ALL_BROKERS_DOWN


class Faults:
    """The last error that each of a process's clients reported; an `error_cb`.

    `last` is empty before the first one. librdkafka calls it within `poll` and `flush`, in the
    thread that calls these.
    """

    def __init__(self) -> None:
        self.last = ""
        self.locked_out = False

    def __call__(self, error: KafkaError) -> None:
        """Called by librdkafka; that all brokers are down says less than why the last one is."""
        if error.code() != _ALL_DOWN or not self.last:
            self.last = error.str()
            self.locked_out = error.code() in LOCKED_OUT

    def words(self, error: KafkaError, servers: str, user: str) -> str:
        """The meaning of an error of a client of these servers, and the cure; a sentence or two.

        `user` is the name by which the brokers know the client.
        """
        if error.code() in _DENIED:
            return (
                f"Kafka at {servers} does not let User:{user} in: {error.str()}. Check the"
                " credentials (-X security.protocol=…, sasl.*, ssl.*) and the ACLs; `belfry doctor`"
                " names the rights that are missing."
            )
        if error.code() in _TOO_SLOW and self.locked_out:
            return (
                f"Kafka at {servers} is there, and there is no secure connection to it:"
                f" {self.last}. {CHECK_SECURITY}, each as -X NAME=VALUE or BELFRY_KAFKA__…."
            )
        if error.code() in _TOO_SLOW:
            cause = f" ({self.last})" if self.last else ""
            return (
                f"No Kafka broker answers at {servers}{cause}. Give the address of a running"
                " broker (--bootstrap-servers, BELFRY_BOOTSTRAP_SERVERS), or start one with"
                " `belfry dev`."
            )
        return f"Kafka at {servers} answers {error.name()}: {error.str()}."


def bad_property(text: str) -> BadProperty:
    """The error for properties that librdkafka refuses, in its words."""
    return BadProperty(
        f"Kafka's client refuses its properties: {text.rstrip('.')}. Allowed are the properties of"
        " librdkafka (CONFIGURATION.md in its sources), such as security.protocol=SASL_SSL."
    )


def permanent(error: KafkaError, group: str | None = None) -> bool:
    """Whether an error that a consumer reports will not pass by itself.

    A reader without commits needs no right to a group, and reads on if it is denied.
    """
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return group is not None
    return error.fatal() or error.code() in _PERMANENT


def missing(topic: str, servers: str) -> MissingTopic:
    """The error for a topic that is not there."""
    return MissingTopic(
        f"Topic {topic} does not exist at {servers}. Start a worker, or run"
        " `belfry topics create`; if belfry's topics have another prefix, set"
        " BELFRY_CLUSTER__TOPIC_PREFIX."
    )
